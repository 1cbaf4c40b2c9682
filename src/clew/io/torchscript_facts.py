"""Facts about a graph of TorchScript that are read before it is converted, or that one node alone does not tell.

Blocks, nodes and values of TorchScript come in and are left as they are; out come names, paths, constants and places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import torch

from clew.io.torchscript_ops import unknown
from clew.ir.node import Node
from clew.ir.source import SourceLine

_INTEGERS = re.compile(r"Tuple\[int(, int)*\]")
_FRAME = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+)')


def outer_values(block: Any) -> Iterator[str]:
    """The names of the values that a block uses and does not make, in the order of first use."""
    made = {value.debugName() for value in block.inputs()}
    for node in block.nodes():
        names = [value.debugName() for value in node.inputs()]
        names += [name for inner in node.blocks() for name in outer_values(inner)]
        yield from (name for name in names if name not in made)
        made |= {value.debugName() for value in node.outputs()}
    yield from (value.debugName() for value in block.outputs() if value.debugName() not in made)


def constant_of(value: Any, known: dict[str, Any]) -> Any:
    """The value of a constant, made in this block or known from outside; None if it is computed."""
    if value.node().kind() == "prim::Constant":
        return value.toIValue()
    found = known.get(value.debugName())
    return None if isinstance(found, Node) else found


def _all_nodes(block: Any) -> Iterator[Any]:
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _all_nodes(inner)


def written_paths(graph: Any) -> frozenset[str]:
    """The paths of the attributes that a program sets."""
    return frozenset(
        _path_of(next(iter(node.inputs())), node.s("name"))
        for node in _all_nodes(graph)
        if node.kind() == "prim::SetAttr"
    )


def _path_of(owner: Any, name: str) -> str:
    made = owner.node()
    if made.kind() == "prim::GetAttr":
        return f"{_path_of(made.input(), made.s('name'))}.{name}"
    return name


def changes_lists(graph: Any) -> bool:
    """Whether some operator of a program changes a list or dict in place."""
    for node in _all_nodes(graph):
        text = node.schema()
        if text != "(no schema)":
            for argument in torch._C.parse_schema(text).arguments:
                kind = str(argument.type)
                is_write = argument.alias_info is not None and argument.alias_info.is_write
                if is_write and kind.startswith(("List[", "Dict[")):
                    return True
    return False


_WRITABLE = frozenset("str int bool float Tensor NoneType Device List[int] List[float] List[bool] List[str]".split())


def check_text(node: Any, kinds: list[str]) -> None:
    """Refuse to write values in a text of which it is not known how TorchScript writes them."""
    for kind in kinds:
        inner = kind.removeprefix("Optional[").removesuffix("]") if kind.startswith("Optional[") else kind
        if inner not in _WRITABLE and not _INTEGERS.fullmatch(inner):
            raise unknown(node.kind(), f"it writes a {kind} in a text, which TorchScript does otherwise than Python")


def source_of(node: Any) -> SourceLine | None:
    """The line of the user's program that a node comes from."""
    found = _FRAME.search(node.sourceRange())
    return None if found is None else SourceLine(found["file"], int(found["line"]), "forward")


def kind_of(kind: Any) -> str:
    """The type of a value in TorchScript's words, whatever else is known of a tensor."""
    return "Tensor" if kind.kind() == "TensorType" else str(kind.annotation_str)
