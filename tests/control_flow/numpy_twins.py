"""The programs of the register, said with NumPy: what becomes of each construct there.

In come the sources of `tests/control_flow/constructs`; calls of torch are replaced by those of NumPy that mean the same
(`_FUNCTIONS`, `_METHODS`), tensors among the inputs by arrays. Out come programs like those of the register, as many as
run on all their inputs with NumPy, and raise an error where the original does; modules, gradients and devices have no
twin. `python -m tests.control_flow.numpy_twins [--write]` prints what Clew makes of them, or keeps it as expected.
"""

from __future__ import annotations

import ast
import functools
import linecache
import sys
import types
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from tests.control_flow import expected
from tests.control_flow.examination import CAPTURED, Finding, examine
from tests.control_flow.register import Construct, Keywords, all_constructs
from tests.footguns.harness import WRONG
from tests.footguns.ledger import Case
from tests.footguns.world import quietly, restored, seed_everything

SUBJECT = "numpy"
FOLDER = Path(__file__).with_name("constructs")
_FUNCTIONS = {
    "cat": "concatenate", "concat": "concatenate", "tensor": "array", "linspace": "linspace", "clamp": "clip",
    "Tensor": "ndarray", "long": "int64", "pow": "power", "remainder": "mod", "relu": "maximum",
}  # fmt: skip
_METHODS = {name: f"np.{name}" for name in "abs exp sqrt sin cos tanh log isnan isfinite sign floor square".split()} | {
    "norm": "np.linalg.norm",
    "relu": "np.maximum",
    "pow": "np.power",
    "roll": "np.roll",
    "clamp": "np.clip",
}
_IN_PLACE = {"add_": ast.Add, "sub_": ast.Sub, "mul_": ast.Mult, "div_": ast.Div}
_CASTS = {"float": "np.float64", "double": "np.float64", "long": "np.int64", "int": "np.int32", "bool": "np.bool_"}
_KEYWORDS = {"dim": "axis", "keepdim": "keepdims"}


class _Translator(ast.NodeTransformer):
    """Says with NumPy what is said with torch; what it does not know stays, and fails when it is run."""

    def visit_Import(self, node: ast.Import) -> Any:
        return ast.parse("import numpy as np").body[0] if node.names[0].name == "torch" else node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        return None if str(node.module).partition(".")[0] == "torch" else node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == "torch":
            return _path(f"np.{_FUNCTIONS.get(node.attr, node.attr)}")
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        """``x.add_(y)`` on its own is ``x += y``."""
        self.generic_visit(node)
        call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or len(call.args) != 1:
            return node
        target, sign = call.func.value, _IN_PLACE.get(call.func.attr)
        if sign is None or call.keywords or not isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
            return node
        target.ctx = ast.Store()
        return ast.AugAssign(target, sign(), call.args[0])

    def visit_Call(self, node: ast.Call) -> Any:
        is_relu = ast.unparse(node.func) in ("torch.relu", "F.relu")
        self.generic_visit(node)
        for keyword in node.keywords:
            keyword.arg = _KEYWORDS.get(str(keyword.arg), keyword.arg)
        if is_relu:
            return ast.Call(_path("np.maximum"), [node.args[0], ast.Constant(0)], [])
        return self._method(node, node.func) if isinstance(node.func, ast.Attribute) else node

    def _method(self, node: ast.Call, function: ast.Attribute) -> Any:
        name, owner = function.attr, function.value
        if isinstance(owner, ast.Name) and owner.id == "np":
            return node
        if name in ("clone", "detach"):
            function.attr = "copy"
        elif name in ("numel", "dim") and not node.args:
            return ast.Attribute(owner, "size" if name == "numel" else "ndim", ast.Load())
        elif name == "unbind" and len(node.args) < 2 and not node.keywords:
            return ast.Call(_path("list"), [owner], [])
        elif name in _CASTS and not node.args:
            return ast.Call(ast.Attribute(owner, "astype", ast.Load()), [_path(_CASTS[name])], [])
        elif name in _METHODS:
            zero = [ast.Constant(0)] if name == "relu" else []
            return ast.Call(_path(_METHODS[name]), [owner, *node.args, *zero], node.keywords)
        return node


def _path(text: str) -> Any:
    return ast.parse(text, mode="eval").body


class _Register:
    """What the translated sources import instead of the register."""

    Keywords = Keywords

    def __init__(self) -> None:
        self.found: dict[str, Construct] = {}

    def program(self, construct: str, inputs: Any, *, shows: str = "", **options: Any) -> Any:
        def register(function: Any) -> Any:
            self._add(function.__name__, construct, lambda: function, inputs, options)
            return function

        return register

    def built(self, construct: str, inputs: Any, *, shows: str = "", **options: Any) -> Any:
        def register(make: Any) -> Any:
            self._add(make.__name__, construct, make, inputs, options)
            return make

        return register

    def _add(self, name: str, construct: str, make: Any, inputs: Any, options: dict[str, Any]) -> None:
        def build() -> Case:
            calls = [functools.partial(_call, inputs, place) for place in range(len(inputs()))]
            return Case(make=make, example=calls[0], others=calls[1:], **options)

        self.found[name] = Construct(name, construct, build, (), make)

    @staticmethod
    def v(*numbers: float) -> Any:
        return np.array([float(number) for number in numbers])

    @staticmethod
    def m(*rows: tuple[float, ...]) -> Any:
        return np.array([[float(number) for number in row] for row in rows]) if rows else np.zeros((0, 2))

    @staticmethod
    def s(number: float) -> Any:
        return np.array(number)


def _call(inputs: Any, place: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    given = inputs()[place]
    if isinstance(given, Keywords):
        return given.args, dict(given.kwargs)
    return (given if type(given) is tuple else (given,)), {}


@functools.cache
def all_twins() -> dict[str, Construct]:
    """The programs that have a twin, by name."""
    register = _Register()
    for path in sorted(FOLDER.glob("*.py")):
        _run(path, register)
    return {one.name: register.found[one.name] for one in all_constructs() if _is_twin(one, register.found)}


def _run(path: Path, register: _Register) -> None:
    """Run a translated source, statement by statement: what needs torch is left out."""
    tree = ast.fix_missing_locations(_Translator().visit(ast.parse(path.read_text())))
    text = ast.unparse(tree)
    filename, name = f"<numpy twin of {path.name}>", f"tests.control_flow.numpy_twin_{path.stem}"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    module = types.ModuleType(name)
    sys.modules[name] = module
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.ImportFrom) and statement.module == "tests.control_flow.register":
            vars(module).update({one.name: getattr(register, one.name) for one in statement.names})
            continue
        try:
            exec(compile(ast.Module([statement], []), filename, "exec", dont_inherit=True), vars(module))
        except (AttributeError, NameError, ImportError):
            continue


def _is_twin(program: Construct, found: dict[str, Construct]) -> bool:
    """Whether a twin runs on all inputs, and raises an error where the original does."""
    twin = found.get(program.name)
    return twin is not None and _errors(twin) == _errors(program)


def _errors(program: Construct) -> list[str] | None:
    with restored(), quietly():
        try:
            seed_everything(0)
            case = program.build()
            function = case.callable()
            calls = [make() for make in (case.example, *case.others)]
        except (AttributeError, NameError, TypeError, ValueError):
            return None
        return [_error(function, args, kwargs) for args, kwargs in calls]


def _error(function: Any, args: Any, kwargs: Any) -> str:
    try:
        function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__
    return ""


def examine_twin(name: str, seconds: float = 20.0) -> Finding | None:
    """What becomes of the twin of a program; None if it has none."""
    twin = all_twins().get(name)
    return None if twin is None else examine(twin, "trace", seconds, thorough=False)


def main(arguments: list[str]) -> int:
    """Print what becomes of all twins."""
    findings = [one for one in map(examine_twin, all_twins()) if one is not None]
    for one in findings:
        if one.status != CAPTURED:
            print(f"{one.construct}/{one.name}: {one.status} {one.reason}")
    print(Counter(one.status for one in findings))
    if "--write" in arguments:
        expected.write(SUBJECT, findings)
    return int(any(one.status == WRONG for one in findings))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
