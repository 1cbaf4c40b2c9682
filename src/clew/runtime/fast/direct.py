"""The call of a captured program in one step: a function that becomes ``__call__`` of the object that holds the graph.

The definition of the code comes in, plain or bound; out comes a function of the same parameters. It looks whether the
guards at the entrance hold, and whether all that bound code relies on is as it was; if so the rest of the code runs.
Where anything fails it passes the call on to the slow path, which knows what to do, and which guard to name. Guards on
variables are written as expressions that look at them in place (``quick_tests``): they run no code of a user's, and may
be true too often, but never too seldom.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple, TypeVar

from clew.capture.guards.function_equality import ClassWithout, FunctionState, PartialState
from clew.capture.guards.notes import Variable
from clew.capture.guards.saved_variables import SavedValue
from clew.capture.guards.variable_reads import ATTRIBUTE, CONTAINS, ITEM, LENGTH, Item, current
from clew.capture.location import MISSING

# ---- the call --------------------------------------------------------------------------------------------------------


Part = TypeVar("Part", bound=ast.AST)
PREFIX = "_direct_"
_CONSTANT = ("dtype", "layout")
_ARRAY = "torch.Tensor"
_PROCESSOR = "device(type='cpu')"
_NOTED = """
try:
    pass
except {prefix}Exception as {prefix}error:
    {prefix}note({callee}, {prefix}error)
    raise
"""


class Body(NamedTuple):
    """The definition of a function of ``self``, its globals, and an expression that is true where it must not run."""

    definition: ast.FunctionDef
    names: dict[str, Any]
    unless: str = ""
    checks: slice = slice(0, 0)
    """Which of the first statements are guards; those before them give parameters other names."""
    first: Sequence[str] = ()
    """Statements that come before all others; where one raises one of ``GONE`` the body must not run."""


def direct_call(
    body: Body,
    filename: str,
    general: Callable[..., Any],
    note: Callable[[Any, Exception], None],
    root: str = "",
) -> FunctionType | None:
    """A function of the callee and the arguments of ``body``; ``root`` is the callee's attribute that is its ``self``.

    ``general`` is called with the same where this function does not know; ``note`` tells what is known of an error.
    """
    definition, names, unless = body[:3]
    parameters = definition.args
    receiver = (parameters.posonlyargs or parameters.args)[:1]
    if not receiver or receiver[0].arg != "self":
        return None
    callee = f"{PREFIX}callee" if root else "self"
    names = names | {f"{PREFIX}general": general, f"{PREFIX}note": note, f"{PREFIX}Exception": Exception}
    names |= {f"{PREFIX}gone": GONE, f"{PREFIX}KeyError": KeyError}
    way = _Entrance(names, f"return {PREFIX}general({callee}{_passed_on(parameters)})")
    checks = [*definition.body[: body.checks.start], *way.written(definition.body[body.checks])]
    rest = definition.body[body.checks.stop :] or _written("return None", definition)
    start = _written(f"if {unless}:\n    {way.leave}", definition) if unless else []
    first = [*body.first, *way.looks]
    if first:
        lines = "".join(f"    {line}\n" for line in first)
        start += _written(f"try:\n{lines}except {PREFIX}gone:\n    {way.leave}", definition)
    if root and _reads_self(definition.body):
        start = _written(f"self = {callee}.{root}", definition) + start
    noted = _written(_NOTED.format(prefix=PREFIX, callee=callee), definition)
    noted[0].body = rest  # type: ignore[attr-defined]
    if not parameters.posonlyargs:  # a keyword of that name is among the program's own
        parameters.posonlyargs, parameters.args = receiver, parameters.args[1:]
    receiver[0].arg = callee
    made = ast.FunctionDef(definition.name, parameters, [*start, *checks, *noted], [], None)
    return compiled(ast.copy_location(made, definition), filename, names)


def compiled(definition: ast.FunctionDef, filename: str, names: dict[str, Any]) -> FunctionType:
    """The function of a definition, under the file name of the code that it stands for."""
    code = compile(ast.Module([definition], []), filename, "exec", dont_inherit=True)
    inner = next(part for part in code.co_consts if isinstance(part, CodeType))
    exec(code, names)
    found: FunctionType = names[inner.co_name]
    return found


class _Entrance:
    """The guards at the beginning of a body, each as a test that leaves by the general way.

    ``looks`` are statements for guards on variables, which come before all tests and raise where one is not as it was.
    """

    def __init__(self, names: dict[str, Any], leave: str) -> None:
        self.names = names
        self.leave = leave
        self._arrays: set[str] = set()
        self._bound: dict[int, tuple[str, Any]] = {}
        self._looks: dict[str, None] = {}

    @property
    def looks(self) -> list[str]:
        """All looks at variables as one statement."""
        return [f"if {' or '.join(self._looks)}: raise {PREFIX}KeyError"] if self._looks else []

    def written(self, checks: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The statements in the place of guards, each of which is an ``if`` with the call that raises."""
        return [self._test(check) for check in checks if isinstance(check, ast.If) and not self._is_look(check.test)]

    def _test(self, check: ast.If) -> ast.stmt:
        (written,) = _written(f"if 0:\n    {self.leave}", check)
        written.test = _placed(self._looked_up(self._read(check.test)), check)  # type: ignore[attr-defined]
        return written

    def _read(self, test: ast.expr) -> ast.expr:
        """A test that asks arrays for what they know without making an object."""
        if isinstance(test, ast.Compare) and ast.unparse(test.comparators[0]) == _ARRAY:
            self._arrays.update(getattr(one, "id", "") for one in getattr(test.left, "args", ()))
        return self._asked_on_processor(test)

    def _is_look(self, test: ast.expr) -> bool:
        """Whether a test is ``not variable.is_as_before()`` and becomes looks at the variable itself."""
        if not isinstance(test, ast.UnaryOp) or not isinstance(test.operand, ast.Call):
            return False
        asked = test.operand.func
        variable = self.names.get(getattr(getattr(asked, "value", None), "id", ""))
        if not isinstance(variable, Variable) or getattr(asked, "attr", "") != Variable.is_as_before.__name__:
            return False
        looks = quick_tests(variable, self._bind)
        if not looks or self._is_true(" or ".join(looks)):
            return False
        self._looks.update(dict.fromkeys(looks))
        return True

    def _is_true(self, looks: str) -> bool:
        try:
            return bool(eval(looks, self.names))
        except GONE:
            return True

    def _bind(self, value: Any) -> str:
        """A name for an object among the globals of the code."""
        name, _ = self._bound.setdefault(id(value), (f"{PREFIX}{len(self._bound)}", value))
        self.names[name] = value
        return name

    def _looked_up(self, test: ast.expr) -> ast.expr:
        """A test with classes and kinds of numbers, ``torch.Tensor`` or ``torch.float32`` say, found beforehand."""
        for node in ast.walk(test):
            if isinstance(node, ast.Compare):
                node.comparators = [self._known(value) for value in node.comparators]
        return test

    def _known(self, value: ast.expr) -> ast.expr:
        """A name of its own for a class, or a kind of numbers, in a module."""
        if not isinstance(value, ast.Attribute) or not isinstance(value.value, ast.Name):
            return value
        holder = self.names.get(value.value.id)
        found = getattr(holder, value.attr, None) if isinstance(holder, ModuleType) else None
        if not isinstance(found, type) and type(found).__name__ not in _CONSTANT:
            return value
        name = f"{PREFIX}{value.value.id}_{value.attr}"
        self.names[name] = found
        return ast.Name(name, ast.Load())

    def _asked_on_processor(self, test: ast.expr) -> ast.expr:
        """``x.device != cpu`` as ``not x.is_cpu``, which makes no object, for what is known to be an array."""
        if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.NotEq):
            return test
        read, wanted = test.left, self.names.get(getattr(test.comparators[0], "id", ""))
        if not isinstance(read, ast.Attribute) or read.attr != "device" or repr(wanted) != _PROCESSOR:
            return test
        if getattr(read.value, "id", "") not in self._arrays:
            return test
        return ast.UnaryOp(ast.Not(), ast.Attribute(read.value, "is_cpu", ast.Load()))


def _passed_on(parameters: ast.arguments) -> str:
    """The arguments of a call that passes on what a function was given."""
    places = [one.arg for one in (*parameters.posonlyargs, *parameters.args)][1:]
    places += [f"*{parameters.vararg.arg}"] if parameters.vararg is not None else []
    places += [f"{one.arg}={one.arg}" for one in parameters.kwonlyargs]
    places += [f"**{parameters.kwarg.arg}"] if parameters.kwarg is not None else []
    return "".join(f", {one}" for one in places)


def _reads_self(body: list[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "self" for part in body for node in ast.walk(part))


def _written(text: str, place: ast.AST) -> list[ast.stmt]:
    """Statements, all at the place of another in the source."""
    return [_placed(statement, place) for statement in ast.parse(text).body]


def _placed(found: Part, place: ast.AST) -> Part:
    for node in ast.walk(found):
        ast.copy_location(node, place)
    return found


# ---- guards on variables, as expressions -----------------------------------------------------------------------------

Bind = Callable[[Any], str]
"""Gives an object a name that expressions may use, the same one each time."""
GONE = (KeyError, AttributeError, ValueError)
"""What the expressions raise where a variable, an item or the content of a cell is no longer there."""
_USUAL = (object.__getattribute__, type.__getattribute__)


def quick_tests(variable: Variable, bind: Bind) -> list[str]:
    """The expressions for a guard on ``variable``; none where only the guard itself can tell."""
    of_held = _TESTS_OF_HELD.get(type(variable.held)) or getattr(variable.held, "quick_tests", None)
    if type(variable.expected) is SavedValue or of_held is None:
        return []
    tests: list[str] = []
    now = _read(variable, bind, tests)
    if now is None:
        return []
    differs = "!=" if getattr(variable, "way", "") == LENGTH else "is not"
    tests += [f"{now} {differs} {bind(variable.expected)}"]
    tests += of_held(variable.held, bind)
    return [f"{bind(current)}.get() is not None", *tests]


def _of_function(state: FunctionState, bind: Bind) -> list[str]:
    """The expressions for the code and the defaults of a function."""
    function = bind(state.function)
    tests = [f"{function}.__code__ is not {bind(state.code)}", f"{function}.__defaults__ is not {bind(state.defaults)}"]
    named = f"{function}.__kwdefaults__"
    if state.named is not None:
        tests.append(f"{named} is None")
    return tests + [f"{named}[{name!r}] is not {bind(value)}" for name, value in (state.named or {}).items()]


def _of_partial(state: PartialState, bind: Bind) -> list[str]:
    """The expressions for the function and the arguments of a partial."""
    held = bind(state.held)
    tests = [f"{held}.func is not {bind(state.function)}", f"{held}.args is not {bind(state.args)}"]
    tests.append(f"{bind(len)}({held}.keywords) != {len(state.keywords)}")
    return tests + [f"{held}.keywords[{name!r}] is not {bind(value)}" for name, value in state.keywords.items()]


def _of_class(state: ClassWithout, bind: Bind) -> list[str]:
    """The expression for a class in which nothing new can be."""
    return [f"{bind(len)}({bind(vars(state.kind))}) != {state.count}"]


_TESTS_OF_HELD: dict[Any, Callable[[Any, Bind], list[str]]] = {
    type(None): lambda state, bind: [],
    FunctionState: _of_function,
    PartialState: _of_partial,
    ClassWithout: _of_class,
}
"""The expressions for what a variable's value holds, where it does not write them itself (``quick_tests``); there are
none for the containers below it."""


def _read(variable: Variable, bind: Bind, tests: list[str]) -> str | None:
    """The expression for what a variable is now; it holds if none of ``tests`` is true."""
    if isinstance(variable, Item):
        container = _read(variable.base, bind, tests)
        value = None if container is None else variable.base.get()
        found = None if container is None else _part(variable, value, bind)
        if found is not None:
            tests.append(f"{container} is not {bind(value)}")
        return found
    holder = variable.holder
    if isinstance(holder, CellType):
        return f"{bind(holder)}.cell_contents"
    if type(holder) is dict or isinstance(holder, type):
        table = vars(holder) if isinstance(holder, type) else holder  # ``vars`` follows all changes of a class
        return _item(bind(table), variable.name, variable.name in table, bind)
    if isinstance(holder, dict) or not _has_plain_attributes(holder):
        return None
    return _item(f"{bind(holder)}.__dict__", variable.name, variable.name in vars(holder), bind)


def _part(item: Item, value: Any, bind: Bind) -> str | None:
    """The expression for what an item's container tells, as long as that is ``value``."""
    kind, way = type(value), item.way
    if way == ATTRIBUTE and _has_plain_attributes(value):
        return _item(f"{bind(value)}.__dict__", item.name, item.name in vars(value), bind)
    if way == ITEM and kind is dict:
        return _item(bind(value), item.name, item.name in value, bind)
    if way == CONTAINS and kind in (dict, set):
        return f"({bind(item.name)} in {bind(value)})"
    return f"{bind(len)}({bind(value)})" if way == LENGTH and kind in (dict, list, set) else None


def _has_plain_attributes(value: Any) -> bool:
    """Whether an object has its attributes in a dict, which is found without running code of a user's."""
    return type(value).__getattribute__ in _USUAL and type(getattr(value, "__dict__", None)) is dict


def _item(table: str, key: Any, is_there: bool, bind: Bind) -> str:
    """The expression for an item of a dict: one that is there is looked up, which is quicker than a call."""
    if not is_there:
        return f"{table}.get({bind(key)}, {bind(MISSING)})"
    return f"{table}[{key!r}]" if type(key) is str else f"{table}[{bind(key)}]"
