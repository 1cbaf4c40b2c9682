"""Numbers beside tensors in bound code: ``x + 1`` takes a tensor that holds the 1, made once.

The definition of a generated function comes in, and is changed in place. For a plain number torch makes a tensor at
each call and converts it to the class of the other operand, which costs more than the operation. On a processor a
tensor without dimensions, of the very class of the other operand, gives the same bits, class and gradient; other
devices divide otherwise. It is taken only where the other operand is such a tensor; else the number stays. Importing
this file imports torch.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import Any

import torch

from clew.runtime.loads import OuterStatements

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_SWAPPED: dict[type[ast.operator | ast.cmpop], type[ast.operator | ast.cmpop]] = {
    ast.Add: ast.Add, ast.Mult: ast.Mult, ast.Eq: ast.Eq, ast.NotEq: ast.NotEq,
    ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE,
}  # fmt: skip
"""Operators that Python asks of the second operand when the first is a number: what it asks then."""
_COMPARING = (ast.Eq, ast.NotEq, ast.Lt, ast.Gt, ast.LtE, ast.GtE)
_METHODS = frozenset({"add", "sub", "mul", "div", "gt", "ge", "lt", "le", "eq", "ne", "add_", "sub_", "mul_", "div_"})
_SIZES = frozenset({"dim", "numel", "nelement", "ndimension", "size", "item", "__len__"})
_EXACT = 2**24
"""Up to here whole numbers have a value of their own in each class of floats."""
_SMALLEST, _LARGEST = 1e-30, 1e30


class Numbers(OuterStatements):
    """Puts tensors in the place of numbers; ``names`` are the globals that the code needs then."""

    def __init__(self, prefix: str, definition: ast.FunctionDef) -> None:
        self.prefix = prefix
        self.names: dict[str, Any] = {}
        self._known: dict[tuple[type, str], str] = {}
        self._plain = _numbers_among(definition)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """``x + 1``; ``2 * x`` as ``x * 2``, which is what Python makes of it."""
        self.generic_visit(node)
        if not isinstance(node.op, _ARITHMETIC) or not any(
            isinstance(one, ast.Name) for one in (node.left, node.right)
        ):
            return node  # a result without a name would be kept for longer than it lives
        if _value(node.left) is not None and type(node.op) in _SWAPPED and self._is_usable(node.right, node.left):
            node.left, node.right = node.right, node.left
        if self._is_usable(node.left, node.right):
            node.left, node.right = self._pair(node.left, node.right)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """``x > 0``, and ``0 < x`` as that."""
        self.generic_visit(node)
        if len(node.ops) != 1 or not isinstance(node.ops[0], _COMPARING):
            return node
        (right,) = node.comparators
        if _value(node.left) is not None and self._is_usable(right, node.left):
            node.left, right = right, node.left
            node.ops = [_SWAPPED[type(node.ops[0])]()]  # type: ignore[list-item]
        if self._is_usable(node.left, right):
            node.left, right = self._pair(node.left, right)
        node.comparators = [right]
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        """``x += 1``."""
        self.generic_visit(node)
        target = node.target
        if isinstance(node.op, _ARITHMETIC) and isinstance(target, ast.Name):
            read = ast.copy_location(ast.Name(target.id, ast.Load()), target)
            if self._is_usable(read, node.value):
                node.value = self._pair(read, node.value)[1]
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """``x.add(1)``."""
        self.generic_visit(node)
        method = node.func
        if not isinstance(method, ast.Attribute) or method.attr not in _METHODS or len(node.args) != 1 or node.keywords:
            return node
        if isinstance(method.value, ast.Name) and self._is_usable(method.value, node.args[0]):
            method.value, node.args[0] = self._pair(method.value, node.args[0])
        return node

    # ---- writing -------------------------------------------------------------------------------------------------

    def _is_usable(self, operand: ast.expr, number: ast.expr) -> bool:
        """Whether a number may stand beside a tensor here."""
        value = _value(number)
        if value is None or _value(operand) is not None or _is_number(operand, self._plain):
            return False
        if type(value) is int:
            return abs(value) <= _EXACT
        return value == 0 or _SMALLEST < abs(value) < _LARGEST

    def _pair(self, operand: ast.expr, number: ast.expr) -> tuple[ast.expr, ast.expr]:
        """The operand, read once, and what stands for the number beside it."""
        value: Any = _value(number)
        tensors = self._tensors(value)
        first, again = operand, ast.Name(f"{self.prefix}operand", ast.Load())
        if isinstance(operand, ast.Name):
            again = ast.Name(operand.id, ast.Load())
        else:
            first = ast.NamedExpr(ast.Name(again.id, ast.Store()), operand)
        test = f"{self.prefix}type({again.id}) is {self.prefix}Tensor and {again.id}.is_cpu"
        chosen = ast.parse(f"{tensors}({again.id}.dtype, {value!r}) if {test} else {value!r}", mode="eval").body
        for part in ast.walk(chosen):
            ast.copy_location(part, number)
        return ast.copy_location(first, operand), chosen

    def _tensors(self, value: float) -> str:
        """The name of the function that gives the tensor for a class of the other operand."""
        key = (type(value), repr(value))  # a zero has a sign
        if key not in self._known:
            name = self._known[key] = f"{self.prefix}number{len(self._known)}"
            kinds = [torch.float32, torch.float64, *([torch.int64] if type(value) is int else [])]
            with torch.inference_mode(False):
                made = {kind: torch.tensor(value, dtype=kind, device="cpu") for kind in kinds}
            self.names[name] = made.get
        return self._known[key]


def _value(node: ast.expr) -> float | None:
    """The number that an expression writes out; None for any other."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _value(node.operand)
        return None if inner is None else -inner
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, int | float) and type(value) is not bool else None


def _numbers_among(definition: ast.FunctionDef) -> frozenset[str]:
    """The local names that only ever hold numbers or sizes, so that no tensor needs to be looked for."""
    assigned: dict[str, list[ast.expr]] = {}
    stored: list[str] = [node.arg for node in ast.walk(definition) if isinstance(node, ast.arg)]
    for node in ast.walk(definition):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored.append(node.id)
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.NamedExpr)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    assigned.setdefault(target.id, []).append(node.value)
    times = Counter(stored)
    found = frozenset(name for name, values in assigned.items() if len(values) == times[name])
    while True:
        kept = frozenset(name for name in found if all(_is_number(value, found) for value in assigned[name]))
        if kept == found:
            return found
        found = kept


def _is_number(node: ast.expr, names: frozenset[str]) -> bool:
    """Whether an expression is a number, a size or a shape, or nothing at all."""
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Subscript):
        return _is_number(node.value, names)
    if isinstance(node, ast.Attribute):
        return node.attr in ("shape", "ndim")
    if isinstance(node, ast.BinOp):
        return _is_number(node.left, names) and _is_number(node.right, names)
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand, names)
    if isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute):
            return function.attr in _SIZES
        return isinstance(function, ast.Name) and function.id in ("len", "int", "float", "bool")
    return False
