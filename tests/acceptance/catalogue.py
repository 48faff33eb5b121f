#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/scenarios.md, from the tests themselves."""

import importlib
import re

from scenario import HERE, Scenario

HEAD = """# Scenarios

What each way of sharing GPUs asks of the scheduler's side, by number, and what shows that it is done: cases of `tests/acceptance`, which ask the program with a saved cluster as kube-scheduler does, and the scenarios of `tests/e2e` in which the real kube-scheduler does. After every bind the cards are added up again.

| | what is done | what is not, and why | acceptance | e2e |
|---|---|---|---|---|
"""

ELSEWHERE = {
    "S2": "Cards that are divided in four by day and whole by night: a calendar says which layout a node has from when "
    "(`--calendar`); before a change the node takes no pods that outlast it, and gives nothing until label and plugin "
    "agree.",
    "S15": "MIG instances cut on demand, placed where they leave most for others: under HAMi's and Volcano's plugins.",
    "S29": "Fair shares of tenants: what a quota's min is short of is taken back from those that borrow "
    "(`--elastic-quotas`, `--reclaim`).",
    "S30": "Gangs: pods of a group come together or not at all, by any of the words in use (`--gangs`); what is left of "
    "half a group ends (`--gang-strict`).",
    "S31": "Quotas that are lent: what one tenant does not use others borrow, up to their max (`--elastic-quotas`); fixed "
    "ones by model besides (`--quota-model-label`).",
    "S33": "Classes of work: with whom a pod shares a card, who ends first, and where it goes (`--classes`).",
}
SHOWN = {"S2": "switch switch-mig", "S15": "hami-mig", "S29": "quotas-reclaim", "S30": "gangs gangs-native gangs-strict",
         "S31": "quotas quotas-elastic", "S33": "classes"}


def classes():
    """{number: its class} of all modules test_*.py beside this file."""
    found = {}
    for path in sorted(HERE.glob("test_*.py")):
        for each in vars(importlib.import_module(path.stem)).values():
            if isinstance(each, type) and issubclass(each, Scenario) and re.match(r"S\d", each.__name__):
                found[each.__name__] = each
    return found


def order(number):
    return int(re.match(r"S(\d+)", number)[1]), number


def row(number, each):
    if each is None:
        return f"| {number} | {ELSEWHERE[number]} | | | {SHOWN.get(number, '')} |\n"
    done = " ".join(each.__doc__.split())
    test = f"`tests/acceptance/{each.__module__}.py`"
    return f"| {number} | {done} | {each.cannot} | {test} | {' '.join(each.e2e)} |\n"


def catalogue():
    found = classes()
    numbers = sorted(found.keys() | ELSEWHERE.keys(), key=order)
    return HEAD + "".join(row(number, found.get(number)) for number in numbers)


if __name__ == "__main__":
    print(catalogue(), end="")
