# SPDX-License-Identifier: Apache-2.0
"""The tables of mistakes, and how they are written into the sources, each switched by its name."""

import dataclasses
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TABLES = HERE / "tables"

HEAD = re.compile(r"\[([a-z0-9][a-z0-9-]*)\] (src/\S+\.[ch]) (\w+)$")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|\w+|->|\+\+|--|<<=|>>=|[-+*/%&|^=!<>]=|<<|>>|&&|\|\||\S')

# How tightly operators bind. What binds less tightly than its surroundings cannot be replaced by itself.
BINDS = {",": 0, "?": 2, ":": 2, "||": 3, "&&": 4, "|": 5, "^": 6, "&": 7, "==": 8, "!=": 8, "<": 9, ">": 9, "<=": 9,
         ">=": 9, "<<": 10, ">>": 10, "+": 11, "-": 11, "*": 12, "/": 12, "%": 12}
BINDS.update({operator: 1 for operator in ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")})
UNARY, POSTFIX, OPERAND = 13, 14, 15


class Wrong(Exception):
    """A row or a table that cannot be used."""


@dataclasses.dataclass
class Mistake:
    name: str
    table: str  # the folder below src/
    file: str
    function: str
    was: str = ""
    becomes: str = None
    tests: list = None  # instead of the table's
    line: int = 0

    @property
    def statement(self):
        return self.was.endswith((";", "}"))

    def __str__(self):
        return f"{self.name} ({self.file}, {self.function})"


def read_table(path):
    """The tests of a table and its mistakes."""
    judges, mistakes = [], []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.rstrip()
        if not line or line.startswith("#"):
            continue
        head = HEAD.match(line)
        if head:
            mistakes.append(Mistake(head[1], path.stem, head[2], head[3], line=number))
        elif line.startswith("tests: "):
            if mistakes:
                mistakes[-1].tests = line.split()[1:]
            else:
                judges = line.split()[1:]
        elif line.startswith("- ") and mistakes and mistakes[-1].becomes is None:
            mistakes[-1].was = f"{mistakes[-1].was} {line[2:].strip()}".strip()
        elif line[0] == "+" and mistakes:
            mistakes[-1].becomes = f"{mistakes[-1].becomes or ''} {line[1:].strip()}".strip()
        else:
            raise Wrong(f"{path.name}:{number}: '{line}' is no line of a table")
    for mistake in mistakes:
        where = f"{path.name}:{mistake.line}: {mistake.name}"
        if not mistake.was or mistake.becomes is None:
            raise Wrong(f"{where} needs a line '- …' and a line '+ …'")
        if mistake.was == mistake.becomes or (not mistake.becomes and not mistake.statement):
            raise Wrong(f"{where} becomes nothing that differs")
        if not mistake.file.startswith(f"src/{path.stem}/"):
            raise Wrong(f"{where} is of another folder")
        mistake.tests = mistake.tests or judges
    return mistakes


def read_tables(folder=TABLES):
    mistakes = [mistake for path in sorted(folder.glob("*.txt")) for mistake in read_table(path)]
    seen = {}
    for mistake in mistakes:
        other = seen.setdefault(mistake.name, mistake)
        if other is not mistake:
            raise Wrong(f"two mistakes have the name {mistake.name}")
    return mistakes


def without_comments(text):
    """The text with blanks for comments, so that places stay the same."""
    return COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def find_function(text, name):
    """(start, end) of the body of a function. Bodies begin and end with a brace in the first column."""
    found = []
    for match in re.finditer(rf"^(?![ \t#}}/*])[^;=\n]*\b{name}\(", text, re.M):
        body = re.compile(r"[^;{}]*\)[^;{}]*\n\{\n").match(text, match.end() - 1)
        if body:
            end = text.find("\n}", body.end() - 1)
            found.append((body.end(), end))
    if len(found) != 1:
        raise Wrong("there is no such function" if not found else "there are several functions of that name")
    return found[0]


def is_operand(token):
    return bool(token) and (token[0].isalnum() or token[0] in "_\"')]" ) and token not in ("return", "case", "else")


def loosest(tokens):
    """How tightly the loosest operator binds that is in no brackets."""
    depth, found = 0, OPERAND
    for at, token in enumerate(tokens):
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
        elif depth == 0 and token in BINDS:
            binary = at > 0 and is_operand(tokens[at - 1])
            found = min(found, BINDS[token] if binary else UNARY)
        elif depth == 0 and token in ("!", "~", "++", "--"):
            found = min(found, UNARY)
    return found


def check_surroundings(mistake, before, after):
    """The text that is replaced has to be a whole statement or a whole expression."""
    left, right = TOKEN.findall(before), TOKEN.findall(after)
    previous, following = (left or ["{"])[-1], (right or ["}"])[0]
    if mistake.statement:
        if previous not in (";", "{", "}", ")", "else", ":"):
            raise Wrong(f"'{mistake.was}' is not a whole statement: '{previous}' is before it")
        return
    own = loosest(TOKEN.findall(mistake.was))
    binary = len(left) > 1 and is_operand(left[-2])
    if previous in (".", "->"):
        tight = POSTFIX
    elif previous in BINDS:
        tight = BINDS[previous] if binary else UNARY
        tight = min(tight, own - 1) if tight in (1, 2) and own >= tight else tight
    else:
        tight = UNARY if previous in ("!", "~", "++", "--") else -1
    if tight >= own and not (tight == own and previous in ("&&", "||")):
        raise Wrong(f"'{mistake.was}' is not a whole expression: '{previous}' before it binds more tightly")
    if following in BINDS and BINDS[following] > own:
        raise Wrong(f"'{mistake.was}' is not a whole expression: '{following}' after it binds more tightly")
    if following in ("(", "[", ".", "->", "++", "--") and own < OPERAND or following in ("(", "=", "++", "--"):
        raise Wrong(f"'{mistake.was}' is not a whole expression: '{following}' is after it")


def locate(mistake, text):
    """(start, end) of what the mistake replaces."""
    text = without_comments(text)
    start, end = find_function(text, mistake.function)
    words = [re.escape(word) for word in mistake.was.split()]
    pattern = r"\s+".join(words)
    pattern = (r"(?<!\w)" if re.match(r"\w", mistake.was) else "") + pattern
    pattern += r"(?!\w)" if re.search(r"\w$", mistake.was) else ""
    found = [match.span() for match in re.compile(pattern).finditer(text, start, end)]
    if len(found) != 1:
        raise Wrong(f"'{mistake.was}' is there {len(found)} times, not once")
    check_surroundings(mistake, text[start : found[0][0]], text[found[0][1] : end + 2])
    return found[0]


def switched(mistake, old):
    if mistake.statement:
        return f'{{ if (mutant("{mistake.name}")) {{ {mistake.becomes} }} else {{ {old} }} }}'
    return f'(mutant("{mistake.name}") ? ({mistake.becomes}) : ({old}))'


def replace(text, start, end, spans):
    """text[start:end] with the spans replaced, of which one may be in another or the same."""
    out = []
    while spans:
        (first, last, mistake), rest = spans[0], spans[1:]
        inner = [span for span in rest if span[0] < last]
        for span in inner:
            if span[1] > last:
                raise Wrong(f"{span[2]} begins within {mistake} and ends outside")
        out += [text[start:first], switched(mistake, replace(text, first, last, inner))]
        start, spans = last, rest[len(inner) :]
    return "".join(out) + text[start:end]


def plant(text, mistakes, errors):
    """The text of a file with all its mistakes; what does not apply is added to errors."""
    spans = []
    for mistake in mistakes:
        try:
            spans.append((*locate(mistake, text), mistake))
        except Wrong as wrong:
            errors.append(f"{mistake.table}.txt:{mistake.line}: {mistake} does not apply: {wrong}")
    spans.sort(key=lambda span: (span[0], -span[1]))
    try:
        planted = replace(text, 0, len(text), spans)
    except Wrong as wrong:
        errors.append(str(wrong))
        return text
    return f'#line 1 "{mistakes[0].file}"\n{planted}'


def plant_all(mistakes, root=ROOT):
    """{file: text with its mistakes}, and what does not apply."""
    texts, errors, by_file = {}, [], {}
    for mistake in mistakes:
        by_file.setdefault(mistake.file, []).append(mistake)
    for file, own in by_file.items():
        path = root / file
        if path.is_file():
            texts[file] = plant(path.read_text(), own, errors)
        else:
            errors += [f"{mistake.table}.txt:{mistake.line}: {mistake} does not apply: there is no such file"
                       for mistake in own]
    return texts, errors
