"""Nested calling conventions between torch's pytrees and ours.

In comes a code generator of torch.fx or of Clew, out comes the other's for the same convention. A structure is carried
over by building a nest of marks with the one library and taking it apart with the other.
"""

from __future__ import annotations

from typing import Any

import torch.fx
import torch.utils._pytree as pytree
from torch.fx.graph import _PyTreeCodeGen, _PyTreeInfo

from clew import tree
from clew.codegen.python import CodeGen, PyTreeCodeGen, PyTreeInfo
from clew.errors import InteropError


def codegen_from_torch(codegen: Any) -> CodeGen | None:
    """Our code generator for torch's; None for the plain one."""
    _refuse_transformer(codegen)
    if type(codegen) is torch.fx.CodeGen:
        return None
    if type(codegen) is not _PyTreeCodeGen:
        raise _foreign(codegen)
    if codegen.pytree_info is None:
        return None
    names, in_spec = _joined(codegen.pytree_info)
    ours = PyTreeCodeGen(PyTreeInfo(names, in_spec, spec_from_torch(codegen.pytree_info.out_spec)))
    ours.torch_info = codegen.pytree_info  # type: ignore[attr-defined]
    return ours


def codegen_to_torch(codegen: Any) -> Any:
    """torch's code generator for ours; None for the plain one."""
    _refuse_transformer(codegen)
    if codegen is None or type(codegen) is CodeGen:
        return None
    if type(codegen) is not PyTreeCodeGen:
        raise _foreign(codegen)
    info = codegen.pytree_info
    origin = getattr(codegen, "torch_info", None)
    if origin is not None and (list(info.orig_args), info.in_spec) == _joined(origin):
        return _PyTreeCodeGen(_PyTreeInfo(origin.orig_args, origin.in_spec, spec_to_torch(info.out_spec)))
    return _PyTreeCodeGen(_PyTreeInfo(list(info.orig_args), spec_to_torch(info.in_spec), spec_to_torch(info.out_spec)))


def _joined(info: Any) -> tuple[list[str], Any]:
    """The parameters and their structure as one tuple; torch may keep keywords apart: ``((x, y), {"z": z})``."""
    names, spec = list(info.orig_args), info.in_spec
    if not _has_keywords(spec):
        return names, spec_from_torch(spec)
    positional, keywords = spec.children()
    self_name = names[:1] if names[:1] == ["self"] else []
    count = len(self_name) + positional.num_children
    nest = (*_marks(positional), *_marks(keywords).values())
    return [*names[:count], *keywords.context], tree.flatten(nest)[1]


def _has_keywords(spec: Any) -> bool:
    if spec.type is not tuple or spec.num_children != 2:
        return False
    positional, keywords = spec.children()
    return positional.type is tuple and keywords.type is dict


def _marks(spec: Any) -> Any:
    """A nest of the structure; its leaves mean nothing."""
    return pytree.tree_unflatten([0] * spec.num_leaves, spec)


def spec_from_torch(spec: Any) -> Any:
    """Our structure for torch's; None stays None."""
    return None if spec is None else tree.flatten(_marks(spec))[1]


def spec_to_torch(spec: Any) -> Any:
    """torch's structure for ours; None stays None."""
    if spec is None:
        return None
    return pytree.tree_flatten(tree.unflatten([0] * spec.num_leaves, spec))[1]


def _refuse_transformer(codegen: Any) -> None:
    if getattr(codegen, "_body_transformer", None) is not None:
        raise InteropError(
            "a function that rewrites generated code is installed on this graph",
            why="it works on the text of one code generator, and the other writes other text",
            fixes=["leave the context of on_generate_code before converting"],
        )


def _foreign(codegen: Any) -> InteropError:
    return InteropError(
        f"the code generator {type(codegen).__name__} of this graph cannot be converted",
        why="it decides how the graph is called, so leaving it out would change the program",
        fixes=["set the plain code generator with set_codegen(CodeGen()), if the graph can be called without this one"],
    )
