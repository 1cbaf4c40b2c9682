"""torch.fx's names, for ``import clew.fx as fx`` where a program had ``import torch.fx as fx``.

The names of torch.fx are here, flat and in submodules of the same names. What Clew has itself is Clew's own; the rest,
most passes, is torch.fx's own source run over Clew's classes (``torch_source``), imported when it is first asked for.
Where the meaning is better than torch.fx's, and what is left out, is told in ``docs/from_torch_fx.md``.
"""

from collections.abc import Callable
from typing import TypeVar

from clew.capture.symbolic.inputs import PH, PHBase, PHWithMeta
from clew.capture.symbolic.proxy import (
    Attribute,
    GraphAppendingTracer,
    ParameterProxy,
    Proxy,
    Scope,
    ScopeContextManager,
    TracerBase,
    assert_fn,
)
from clew.capture.symbolic.tracer import ProxyableClassMeta, Tracer, is_symbolic_tracing
from clew.capture.symbolic.wrap import wrap
from clew.codegen.python import CodeGen, PythonCode, PyTreeCodeGen, PyTreeInfo
from clew.codegen.statements import inplace_methods, magic_methods, reflectable_magic_methods
from clew.errors import TraceError
from clew.frameworks.torch.guest import TorchGuest
from clew.frameworks.torch.signatures import (
    ArgsKwargsPair,
    check_for_mutable_operation,
    create_type_hint,
    get_signature_for_torch_op,
    normalize_function,
    normalize_module,
    type_matches,
)
from clew.fx._symbolic_trace import symbolic_trace
from clew.fx.installation import install
from clew.fx.torch_source import announce, submodules_beside
from clew.io.exported import from_exported
from clew.io.torch_fx import from_fx, to_fx
from clew.ir.arguments import BASE_TYPES, Argument, Target, immutable_dict, immutable_list, map_aggregate, map_arg
from clew.ir.effects import has_side_effect
from clew.ir.format import format_argument, format_type, qualified_name
from clew.ir.graph import Graph
from clew.ir.interpreter import Interpreter
from clew.ir.names import Namespace
from clew.ir.node import Node
from clew.passes.match import InternalMatch, SubgraphMatcher
from clew.passes.replace import Match, ReplacedPatterns, replace_pattern, replace_pattern_with_filters
from clew.passes.shape_prop import ShapeProp, TensorMetadata
from clew.passes.transformer import Transformer
from clew.runtime.module import GraphModule

ArgumentT = TypeVar("ArgumentT")
BaseArgumentTypes = str | int | float | bool | complex
TransformCodeFunc = Callable[[list[str]], list[str]]

base_types = (*BASE_TYPES, *TorchGuest.constant_classes)
is_fx_tracing = is_fx_symbolic_tracing = is_symbolic_tracing

_get_qualified_name = qualified_name
_type_repr = format_type
_format_arg = format_argument
_Namespace = Namespace
_PyTreeCodeGen = PyTreeCodeGen
_PyTreeInfo = PyTreeInfo

announce()
__getattr__ = submodules_beside(globals())

__all__ = [
    "PH",
    "ArgsKwargsPair",
    "Argument",
    "ArgumentT",
    "Attribute",
    "BaseArgumentTypes",
    "CodeGen",
    "Graph",
    "GraphAppendingTracer",
    "GraphModule",
    "InternalMatch",
    "Interpreter",
    "Match",
    "Node",
    "PHBase",
    "PHWithMeta",
    "ParameterProxy",
    "Proxy",
    "ProxyableClassMeta",
    "PyTreeCodeGen",
    "PyTreeInfo",
    "PythonCode",
    "ReplacedPatterns",
    "Scope",
    "ScopeContextManager",
    "ShapeProp",
    "SubgraphMatcher",
    "Target",
    "TensorMetadata",
    "TraceError",
    "Tracer",
    "TracerBase",
    "TransformCodeFunc",
    "Transformer",
    "assert_fn",
    "base_types",
    "check_for_mutable_operation",
    "create_type_hint",
    "from_exported",
    "from_fx",
    "get_signature_for_torch_op",
    "has_side_effect",
    "immutable_dict",
    "immutable_list",
    "inplace_methods",
    "install",
    "is_fx_symbolic_tracing",
    "is_fx_tracing",
    "magic_methods",
    "map_aggregate",
    "map_arg",
    "normalize_function",
    "normalize_module",
    "reflectable_magic_methods",
    "replace_pattern",
    "replace_pattern_with_filters",
    "symbolic_trace",
    "to_fx",
    "type_matches",
    "wrap",
]
