"""Writes random programs: the same seed and index always give the same text.

Every program uses about half of the grammar (a program of everything is like every other), its variables have kinds, so
that most programs run, and a candidate that fails on its own example is replaced by the next one of its index.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from benchmarks.fuzz import grammar
from benchmarks.fuzz.probes import chosen_parameters, probes_of
from benchmarks.fuzz.program import FUNCTION, KINDS, MODULE, RandomProgram
from benchmarks.fuzz.vocabularies import Vocabulary
from benchmarks.fuzz.vocabularies.torch import TORCH

HOLE = re.compile(r"\{(new|[MRCSIFBmrldingk])\}")
PARAMETER_NAMES = re.compile(r"\b(?<!\.)(mask|n|flag|items|table|scale|mode|more|kept|pair|extra)\b(?!\s*=[^=])")
KEPT_SHARE = 0.5
GROWING = re.compile(
    r"HISTORY|TABLE|KEPT|SEEN|STACK|LATEST|QUEUE|METER|Settings\.shared|collect|remember|self\.(cache|history|options|note)|seen"
)
"""What holds more after each call, so that captures of today refuse all but the first."""
CANDIDATES = 12
PATTERNS = (
    ("(0, _)", "(found, True) if found > 1", "(_, False)"),
    ("0 | 1", "2", "found if found > 3"),
    ("[]", "[_]", "[_, *_]"),
)
"""Cases of a `match`: of a number and a truth, of a number, of a list."""
OF_ERRORS = (
    "HISTORY.append(str(ERROR))",
    "HISTORY.append(type(ERROR).__name__)",
    "HISTORY.append(len(ERROR.args))",
    "{m} = {m} + len(ERROR.args)",
    "{m} = getattr(ERROR, 'value', {m})",
    "raise ValueError('again') from ERROR",
    "raise",
    "print('caught', type(ERROR).__name__)",
)
"""What is done with an error that was caught."""
MODEL = """
class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('memory', torch.zeros(4))
        self.gate = nn.Linear(4, 4)
        self.count, self.kept = 0, None

    def forward(self, value):
        self.count += 1
        self.memory = self.memory * 0.5 + value.detach().mean(0)
        return torch.sigmoid(self.gate(value)) * self.memory

    def peek(self, value):
        if self.kept is None:
            self.kept = value.detach()
        return self.kept[0] + value

    def reset(self):
        self.count, self.kept = 0, None
        self.memory.zero_()


class Model(nn.Module):
    calls = 0
    factor = 1.5

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.5)
        self.act = nn.ReLU(inplace={inplace})
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Tanh()])
        self.block = nn.Sequential(nn.Linear(4, 4), {middle}, nn.Linear(4, 4))
        self.named = nn.ModuleDict({{'up': nn.Linear(4, 4)}})
        self.register_buffer('total', torch.zeros(4))
        self.register_buffer('steps', torch.zeros((), dtype=torch.long))
        self.offset = nn.Parameter(torch.ones(4))
        self.width, self.scale, self.rate = 4, 2.0, 0.5
        self.count, self.last, self.cache, self.history, self.options = 0, None, {{}}, [], {{}}
        self.cell, self.bound = Cell(), functools.partial(self.twice)

    @property
    def doubled_scale(self):
        return self.scale * 2

    @doubled_scale.setter
    def doubled_scale(self, value):
        self.scale = value / 2

    def forward_twice(self, value):
        for one in (self.linear, self.act):
            value = one(value)
        return value

    def twice(self, value):
        if self.training:
            return value * 2
        return value + value + 1

    def note(self, value):
        self.count += 1
        self.last = value.detach()

    def remember(self, value):
        if 'kept' not in self.cache:
            self.cache['kept'] = value * 2
        return self.cache['kept'] + value

"""
CLOSURE_MATRICES = ["{M} * offset", "{M} + calls", "{M} + sum(seen)", "counted_inside({M})"]
CLOSURE_STATEMENTS = ["  calls += 1", "  seen.append({I})", "  offset = {F}", "  seen.append({F})", "  offset *= 1.5"]
CLOSURE_STATEMENTS += ["M new = counted_inside({m})", "  seen[:] = seen[-2:]", "  seen.pop() if seen else None"]
COUNTED_INSIDE = """\
    def counted_inside(value):
        nonlocal calls
        calls += 1
        return value * calls if calls % 2 else value + calls

"""


class Writer:
    """Writes the text of one program."""

    def __init__(self, chosen: random.Random, kind: str, vocabulary: Vocabulary = TORCH) -> None:
        self.random = chosen
        self.kind = kind
        self.vocabulary = vocabulary
        self.closure = kind == FUNCTION and chosen.random() < 0.25
        self.parameters = chosen_parameters(chosen, vocabulary)
        self.variables: dict[str, list[str]] = {"m": ["x", "y"], "r": [], "l": [], "d": [], "i": []}
        for one in self.parameters:
            if one.kind:
                self.variables[one.kind].append(one.name)
        self.names = 0
        self.lines: list[str] = []
        self.grows = chosen.random() < 0.4
        self.tables = self._tables()
        self.statements = self._kept(self._statements())

    def _tables(self) -> dict[str, list[str]]:
        of_modules = {"M": grammar.MODULE_MATRICES, "I": grammar.MODULE_INTEGERS, "F": grammar.MODULE_FLOATS}
        of_modules["B"] = grammar.MODULE_CONDITIONS
        tables = {}
        for letter, table in self.vocabulary.tables.items():
            templates = list(table)
            if self.kind == MODULE:
                templates += grammar.lines(of_modules.get(letter, "")) * 4
            if self.closure and letter == "M":
                templates += CLOSURE_MATRICES * 6
            tables[letter] = self._kept(templates) or [self.vocabulary.leaves[letter]]
        return tables

    def _statements(self) -> list[str]:
        found = list(self.vocabulary.statements)
        if self.kind == MODULE:
            found += grammar.lines(grammar.MODULE_STATEMENTS) * 3
        return found + (CLOSURE_STATEMENTS * 6 if self.closure else [])

    def _kept(self, templates: list[str]) -> list[str]:
        """About half of the templates, none that names a parameter that this program does not have."""
        given = {one.name for one in self.parameters}
        possible = [one for one in templates if set(PARAMETER_NAMES.findall(HOLE.sub("", one))) <= given]
        possible = [one for one in possible if self.grows or not GROWING.search(one)]
        return [one for one in possible if self.random.random() < KEPT_SHARE]

    def fill(self, template: str, depth: int = 2) -> str:
        """The template with something in its holes; the names that it declares are not yet in scope."""
        parts, end = [], 0
        for hole in HOLE.finditer(template):
            parts.append(_unescaped(template[end : hole.start()]))
            parts.append(self._hole(hole.group(1), depth))
            end = hole.end()
        return "".join([*parts, _unescaped(template[end:])])

    def _hole(self, letter: str, depth: int) -> str:
        if letter in self.variables:
            return self.random.choice(self.variables[letter])
        if letter == "n":
            return str(self.random.choice((0, 1, 2, 3)))
        if letter == "g":
            return str(self.random.choice((0.5, 1.5, 0.0, 2, -0.5)))
        if letter == "k":
            return self.random.choice("abc")
        if depth <= 0 or (letter == "M" and self.random.random() < 0.4):
            return self.fill(self.vocabulary.leaves[letter], depth)
        text = self.fill(self._possible(self.tables[letter]) or self.vocabulary.leaves[letter], depth - 1)
        return f"({text})" if " " in text and not text.startswith(("(", "[")) else text

    def _possible(self, templates: Sequence[str]) -> str | None:
        """One of the templates whose variables there are."""
        for _ in range(20):
            template = self.random.choice(templates)
            letters = set(HOLE.findall(template)) & set(self.variables)
            if all(self.variables[letter] for letter in letters):
                return template
        return None

    def expression(self, letter: str) -> str:
        """An expression of a kind."""
        return self._hole(letter, 2)

    @contextmanager
    def scope(self, **more: str) -> Iterator[None]:
        """Variables declared inside are gone afterwards; those given are there inside (`name=kind`)."""
        before = {kind: list(names) for kind, names in self.variables.items()}
        for name, kind in more.items():
            self.variables[kind].append(name)
        yield
        self.variables = before

    def fresh(self, stem: str) -> str:
        """A name that no other variable has."""
        self.names += 1
        return f"{stem}{self.names}"

    def write(self, indent: str, text: str) -> None:
        """One line of the program."""
        self.lines.append(indent + text)

    def block(self, indent: str, depth: int, size: int, in_loop: bool = False) -> None:
        """Some statements."""
        for _ in range(size):
            if depth > 0 and self.random.random() < 0.3:
                self.random.choice(self._compound())(indent, depth, in_loop)
            else:
                self.plain(indent)

    def plain(self, indent: str) -> None:
        """A statement of the grammar."""
        template = self._possible(self.statements) if self.statements else None
        if template is None:
            self.write(indent, "pass")
            return
        declares, text = template[0].lower().strip(), template[2:]
        filled = self.fill(text.removeprefix("new = ") if declares else text)
        if declares:
            name = self.fresh({"m": "v", "r": "row", "l": "parts", "d": "named", "i": "k"}[declares])
            self.write(indent, f"{name} = {filled}")
            self.variables[declares].append(name)
        else:
            self.write(indent, filled)

    def _compound(self) -> list[Callable[[str, int, bool], None]]:
        branches = [self.branch, self.branch, self.branch, self.early, self.early]
        loops = [self.for_loop, self.for_loop, self.while_loop, self.endless]
        functions = [self.inner, self.counting, self.generator]
        return [*branches, *loops, *functions, self.attempt, self.attempt, self.context, self.match]

    def branch(self, indent: str, depth: int, in_loop: bool) -> None:
        """An `if`, mostly with another side."""
        self.write(indent, f"if {self.expression('B')}:")
        with self.scope():
            self.block(indent + "    ", depth - 1, self.random.randint(1, 2), in_loop)
        if self.random.random() < 0.6:
            self.write(indent, "else:")
            with self.scope():
                self.block(indent + "    ", depth - 1, 1, in_loop)

    def early(self, indent: str, depth: int, in_loop: bool) -> None:
        """A way out under a condition."""
        self.write(indent, f"if {self.expression('B')}:")
        ways = [f"return {self.result()}", f"return {self.result()}", "raise ValueError('stop')"]
        ways += ["break", "continue"] * 2 * in_loop
        self.write(indent + "    ", self.random.choice(ways))

    def for_loop(self, indent: str, depth: int, in_loop: bool) -> None:
        """A loop over numbers, rows, lists or dicts."""
        one, place = self.fresh("one"), self.fresh("j")
        heads = [(f"for {place} in range({self.random.choice((2, 3))}):", {place: "i"})]
        heads += [(self.fill(f"for {place} in range({{I}} % 4):"), {place: "i"})]
        heads += [(self.fill(f"for {place} in range({{m}}.shape[0]):"), {place: "i"})]
        heads += [(self.fill(f"for {one} in {{M}}:"), {one: "r"})]
        if self.variables["l"]:
            heads += [(self.fill(f"for {one} in list({{l}}):"), {one: "m"})]
            heads += [(self.fill(f"for {one} in {{l}}[:2]:"), {one: "m"})]
            heads += [(self.fill(f"for {place}, {one} in enumerate({{l}}[:2]):"), {one: "m", place: "i"})]
            heads += [(self.fill(f"for {one}, _ in zip({{l}}[:3], {{m}}):"), {one: "m"})]
        if self.variables["d"]:
            heads += [(self.fill(f"for _, {one} in list({{d}}.items()):"), {one: "m"})]
            heads += [(self.fill(f"for _, {one} in sorted({{d}}.items(), key=lambda z: str(z[0])):"), {one: "m"})]
        if self.kind == MODULE:
            layer = self.fresh("layer")
            heads += [(self.fill(f"for {one} in [{layer}({{m}}) for {layer} in self.layers]:"), {one: "m"})] * 2
        pairs = self.fill("((z, w) for z in ({M}, {m}) for w in (1, 2))")
        heads += [(f"for {one}, {place} in {pairs}:", {one: "m", place: "i"})]
        heads += [(self.fill(f"for {place} in reversed(range({{I}} % 4)):"), {place: "i"})]
        head, given = self.random.choice(heads)
        self.write(indent, head)
        with self.scope(**given):
            self.block(indent + "    ", depth - 1, self.random.randint(1, 2), True)
        if self.random.random() < 0.15:
            self.write(indent, "else:")
            with self.scope():
                self.block(indent + "    ", depth - 1, 1, in_loop)

    def endless(self, indent: str, depth: int, in_loop: bool) -> None:
        """A loop that is left from inside."""
        counter = self.fresh("turn")
        self.write(indent, f"{counter} = 0")
        self.write(indent, "while True:")
        self.write(indent + "    ", f"{counter} += 1")
        self.write(indent + "    ", f"if {counter} > {self.random.choice(('2', '3'))} or ({self.expression('B')}):")
        self.write(indent + "        ", "break")
        with self.scope():
            self.block(indent + "    ", depth - 1, self.random.randint(1, 2), True)

    def while_loop(self, indent: str, depth: int, in_loop: bool) -> None:
        """A loop with a counter, which ends by a condition on it or on data."""
        counter = self.fresh("turn")
        self.write(indent, f"{counter} = 0")
        limit = self.random.choice(("2", "3", self.fill("min({I}, 4)")))
        more = f" and ({self.expression('B')})" if self.random.random() < 0.5 else ""
        self.write(indent, f"while {counter} < {limit}{more}:")
        self.write(indent + "    ", f"{counter} += 1")
        with self.scope():
            self.block(indent + "    ", depth - 1, self.random.randint(1, 2), True)

    def attempt(self, indent: str, depth: int, in_loop: bool) -> None:
        """An error that is caught, and perhaps raised."""
        self.write(indent, "try:")
        with self.scope():
            self.block(indent + "    ", depth - 1, 1, in_loop)
            self.write(indent + "    ", self.fill(self._possible(self.vocabulary.risky) or "assert {B}"))
        error = self.fresh("error")
        named = self.random.random() < 0.3
        self.write(indent, f"except {self.random.choice(self.vocabulary.errors)}{f' as {error}' if named else ''}:")
        with self.scope():
            self.block(indent + "    ", depth - 1, 1, in_loop)
            if named:
                self.write(indent + "    ", self.fill(self.random.choice(OF_ERRORS)).replace("ERROR", error))
        if self.random.random() < 0.2:
            self.write(indent, "else:")
            self.plain(indent + "    ")
        if self.random.random() < 0.3:
            self.write(indent, "finally:")
            self.plain(indent + "    ")

    def context(self, indent: str, depth: int, in_loop: bool) -> None:
        """Statements under a setting of the framework."""
        self.write(indent, self.fill(self.random.choice(self.vocabulary.contexts)))
        with self.scope():
            self.block(indent + "    ", depth - 1, self.random.randint(1, 2), in_loop)

    def inner(self, indent: str, depth: int, in_loop: bool) -> None:
        """A function defined where it is used, which closes over a variable."""
        name, argument = self.fresh("inner"), self.fresh("p")
        self.write(indent, f"def {name}({argument}, by={self.expression('F')}):")
        with self.scope(**{argument: "m"}):
            self.write(indent + "    ", f"return {self.expression('M')} + {argument} * by")
        self.write(indent, f"{self.hole_name('m')} = {name}({self.expression('M')})")

    def counting(self, indent: str, depth: int, in_loop: bool) -> None:
        """A function that changes variables of the one around it, called several times."""
        name, argument, count, kept = self.fresh("step"), self.fresh("p"), self.fresh("count"), self.fresh("kept")
        self.write(indent, f"{count}, {kept} = 0, []")
        self.write(indent, f"def {name}({argument}):")
        with self.scope(**{argument: "m", kept: "l"}):
            self.write(indent + "    ", f"nonlocal {count}")
            self.write(indent + "    ", f"{count} += {self.expression('I')}")
            self.write(indent + "    ", f"{kept}.append({argument})")
            self.block(indent + "    ", depth - 1, 1)
            self.write(indent + "    ", f"return {argument} * {count} + {self.expression('M')}")
        call, result = f"{name}({self.hole_name('m')})", self.hole_name("m")
        calls = [f"{result} = {name}({call})", f"{result} = {call} if {self.expression('B')} else {call}"]
        calls += [f"for _ in range({self.expression('I')} % 3): {result} = {call}"]
        self.write(indent, self.random.choice(calls))
        self.variables["i"].append(count)
        self.variables["l"].append(kept)

    def generator(self, indent: str, depth: int, in_loop: bool) -> None:
        """A generator defined where it is walked, to its end or not."""
        name, argument, one = self.fresh("steps"), self.fresh("p"), self.fresh("one")
        self.write(indent, f"def {name}({argument}):")
        with self.scope(**{argument: "m"}):
            self.write(indent + "    ", f"for {one} in range({self.expression('I')} % 4):")
            with self.scope(**{one: "i"}):
                self.block(indent + "        ", 0, 1)
                self.write(indent + "        ", f"yield {argument} + {one}")
            self.write(indent + "    ", f"yield {self.expression('M')}")
        walked, made = self.hole_name("m"), self.fresh("parts")
        ways = [f"{made} = list({name}({walked}))", f"{made} = [next({name}({walked}))]"]
        ways += [f"{made} = [z for z, _ in zip({name}({walked}), range({self.expression('I')} % 3))]"]
        ways += [f"{made} = [*{name}({walked}), *{name}({self.expression('M')})]"]
        self.write(indent, self.random.choice(ways))
        self.variables["l"].append(made)

    def match(self, indent: str, depth: int, in_loop: bool) -> None:
        """A choice among patterns."""
        rows = self.hole_name("l") if self.variables["l"] else "x.shape"
        subjects = [f"({self.expression('I')}, {self.expression('B')})", self.expression("I"), rows]
        kind = self.random.randrange(len(subjects))
        cases = PATTERNS[kind]
        self.write(indent, f"match {subjects[kind]}:")
        for case in (*cases[: self.random.randint(1, 3)], "_"):
            self.write(indent + "    ", f"case {case}:")
            with self.scope():
                self.block(indent + "        ", depth - 1, 1, in_loop)

    def hole_name(self, letter: str) -> str:
        """A variable of a kind."""
        return self.random.choice(self.variables[letter])

    def result(self) -> str:
        """What is returned."""
        return self.fill(self._possible(self.vocabulary.results) or "{m}", 1)

    def source(self) -> str:
        """The text of the whole module."""
        indent = "        " if self.closure or self.kind == MODULE else "    "
        self.block(indent, 2, self.random.randint(2, 6))
        self.write(indent, f"return {self.result()}")
        body = "\n".join([*_declared("global", "COUNT|SCALE|WEIGHT|LATEST", self.lines, indent), *self.lines]) + "\n"
        text = self._around(body, indent)
        return self.vocabulary.head + _helpers(text, self.vocabulary.helpers) + text

    def _around(self, body: str, indent: str) -> str:
        """The body in its function, method or closure."""
        names = ", ".join(["x", "y", *(one.declared for one in self.parameters)])
        if self.kind == MODULE:
            middle = self.random.choice(("nn.ReLU()", "nn.Dropout(0.3)", "nn.BatchNorm1d(4)", "nn.ReLU(inplace=True)"))
            model = MODEL.format(inplace=self.random.random() < 0.3, middle=middle)
            return f"{model}    def forward(self, {names}):\n{body}\n\ndef make():\n    return Model()\n"
        if self.closure:
            nonlocals = "\n".join(_declared("nonlocal", "calls|offset", self.lines, indent))
            inside = COUNTED_INSIDE if "counted_inside" in body else ""
            head = f"\ndef make():\n    offset, calls, seen = 2.0, 0, []\n\n{inside}    def program({names}):\n"
            return head + (nonlocals + "\n" if nonlocals else "") + body + "\n    return program\n"
        return f"\ndef program({names}):\n{body}\n\ndef make():\n    return program\n"


def _unescaped(text: str) -> str:
    return text.replace("{{", "{").replace("}}", "}")


def _declared(word: str, names: str, lines: list[str], indent: str) -> list[str]:
    """The declaration of those names that the lines assign to."""
    found = {match for line in lines for match in re.findall(rf"^\s*({names}) [-+*]?= ", line)}
    return [f"{indent}{word} {', '.join(sorted(found))}"] if found else []


def _helpers(text: str, helpers: dict[str, str]) -> str:
    """Those that the text names, and those that they name, in the order of the table."""
    used: set[str] = set()
    asked = [text]
    while asked:
        one = asked.pop()
        more = {name for name in helpers if name not in used and re.search(rf"\b{name}\b", one, re.IGNORECASE)}
        used |= more
        asked += [helpers[name] for name in more]
    return "\n".join(text for name, text in helpers.items() if name in used) + ("\n" if used else "")


def write(
    seed: int,
    index: int,
    kind: str | None = None,
    runs: Callable[[RandomProgram], bool] | None = None,
    vocabulary: Vocabulary = TORCH,
) -> RandomProgram:
    """Program `index` of a seed: the first of its candidates that `runs` on its example, the last one otherwise."""
    for candidate in range(CANDIDATES):
        chosen = random.Random(f"{seed} {index} {candidate}")
        own = KINDS[chosen.random() < 0.4] if MODULE in vocabulary.kinds else FUNCTION
        writer = Writer(chosen, kind or own, vocabulary)
        source = writer.source()
        probes = probes_of(chosen, writer.kind, writer.parameters, "\n".join(writer.lines), vocabulary)
        program = RandomProgram(seed, index, writer.kind, source, probes, vocabulary.name)
        if runs is None or runs(program):
            break
    return program
