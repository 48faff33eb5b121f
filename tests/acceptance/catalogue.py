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
    "S2": "Cards that are divided in four by day and whole by night: the calendar is not there; a node "
    "whose division changes gives nothing until both agree (S17).",
    "S15": "MIG instances cut on demand, placed where they leave most for others: under HAMi's and Volcano's plugins.",
    "S29": "Fair shares of tenants with reclaim: not there.",
    "S30": "Gangs: not there; all cards of one pod are booked together.",
    "S31": "Quotas that are lent: not there; fixed ones by model are (`--quota-model-label`).",
    "S33": "Classes of work: not there; policies, priorities and preemption are per pod.",
}
SHOWN = {"S15": "hami-mig", "S31": "quotas", "S33": "preemption preempt-cards"}


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
