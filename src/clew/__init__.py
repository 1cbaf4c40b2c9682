"""Clew: program capture for Python tensor code.

``clew.symbolic_trace(model)`` turns a callable into a graph of its framework's own functions that people read, check,
edit and get back as plain Python. Importing clew imports no framework; names that need one arrive when first used.
``import clew.fx as fx`` has the names of torch.fx.
"""

import importlib
from typing import TYPE_CHECKING, Any

from clew import frameworks as frameworks  # announces the frameworks, imports none
from clew import translate as _room  # noqa: F401  its name is that of a function here: it must not be put here later
from clew.api import symbolic_trace, trace, trace_graph, trace_module, translate
from clew.capture.symbolic.inputs import PH
from clew.capture.symbolic.proxy import Proxy
from clew.capture.symbolic.tracer import ProxyableClassMeta, Tracer
from clew.capture.symbolic.wrap import wrap
from clew.codegen.python import CodeGen, PythonCode
from clew.errors import CaptureError, ClewError, GraphError, GuardError, TraceError
from clew.ir.arguments import map_aggregate, map_arg
from clew.ir.control_flow import choose, cond, for_loop, while_loop
from clew.ir.effects import has_side_effect, pure
from clew.ir.equality import difference, same_graph
from clew.ir.graph import Graph
from clew.ir.guards import Guard, guard
from clew.ir.interpreter import Interpreter
from clew.ir.node import Node, Opcode
from clew.ir.source import SourceLine
from clew.ir.spellings import any_of
from clew.ir.text import parse, text_and_objects, to_text
from clew.ir.types import ArrayType, Type, parse_type, type_of
from clew.runtime.function import GraphFunction

if TYPE_CHECKING:
    from clew.backends.backward import backward, checkpoint
    from clew.backends.compile import compile
    from clew.backends.registry import Backend
    from clew.frameworks.torch.functional_writes import fitted, with_item
    from clew.frameworks.torch.tracing_tools import exporting
    from clew.io.bundle.files import load, save
    from clew.io.decompose import decompose
    from clew.io.exported import from_exported
    from clew.io.jaxpr import from_jaxpr, to_jaxpr
    from clew.io.onnx import to_onnx
    from clew.io.tensorflow_graph import from_tf, to_tf
    from clew.io.torch_fx import from_fx, to_fx
    from clew.io.torchscript import from_torchscript
    from clew.passes.common_subexpressions import common_subexpressions
    from clew.passes.constant_folding import constant_folding
    from clew.passes.convert_dtype import convert_dtype
    from clew.passes.dead_code import dead_code
    from clew.passes.fold_batch_norm import fold_batch_norm
    from clew.passes.functionalize import functionalize, remaining_writes
    from clew.passes.inline_modules import inline_modules
    from clew.passes.match import SubgraphMatcher
    from clew.passes.place import place
    from clew.passes.quantize import insert_observers, quantize
    from clew.passes.recognize import recognize
    from clew.passes.reinplace import reinplace
    from clew.passes.remove_dropout import remove_dropout
    from clew.passes.remove_prints import remove_prints
    from clew.passes.replace import Match, replace_pattern, replace_pattern_with_filters
    from clew.passes.shape_prop import ShapeProp
    from clew.passes.simplify import simplify
    from clew.passes.symbolic_types import symbolic_types
    from clew.passes.transformer import Transformer
    from clew.runtime.module import GraphModule
    from clew.tools.diff import Diff, diff
    from clew.tools.explain import explain
    from clew.tools.explain_match import explain_match
    from clew.tools.extract import extract, feature_extractor
    from clew.tools.interpreters import Logger, Observer, Recorder, compare, find_nan
    from clew.tools.nested import flat, nested
    from clew.tools.pipeline import Pipeline, bisect
    from clew.tools.profile import Profile, profile
    from clew.tools.report import Report, report
    from clew.tools.split import split
    from clew.tools.verify import verify
    from clew.viewer.formats import to_dot, to_mermaid, to_model_explorer, to_netron
    from clew.viewer.page import View, view
    from clew.viewer.svg import to_svg

__version__ = "0.1.0"

_LATE = {
    "Backend": "clew.backends.registry",
    "backward": "clew.backends.backward",
    "checkpoint": "clew.backends.backward",
    "compile": "clew.backends.compile",
    "GraphModule": "clew.runtime.module",
    "Transformer": "clew.passes.transformer",
    "ShapeProp": "clew.passes.shape_prop",
    "Match": "clew.passes.replace",
    "replace_pattern": "clew.passes.replace",
    "replace_pattern_with_filters": "clew.passes.replace",
    "SubgraphMatcher": "clew.passes.match",
    "common_subexpressions": "clew.passes.common_subexpressions",
    "constant_folding": "clew.passes.constant_folding",
    "dead_code": "clew.passes.dead_code",
    "fold_batch_norm": "clew.passes.fold_batch_norm",
    "insert_observers": "clew.passes.quantize",
    "quantize": "clew.passes.quantize",
    "remove_dropout": "clew.passes.remove_dropout",
    "remove_prints": "clew.passes.remove_prints",
    "simplify": "clew.passes.simplify",
    "symbolic_types": "clew.passes.symbolic_types",
    "decompose": "clew.io.decompose",
    "convert_dtype": "clew.passes.convert_dtype",
    "functionalize": "clew.passes.functionalize",
    "remaining_writes": "clew.passes.functionalize",
    "with_item": "clew.frameworks.torch.functional_writes",
    "fitted": "clew.frameworks.torch.functional_writes",
    "inline_modules": "clew.passes.inline_modules",
    "place": "clew.passes.place",
    "recognize": "clew.passes.recognize",
    "reinplace": "clew.passes.reinplace",
    "Pipeline": "clew.tools.pipeline",
    "bisect": "clew.tools.pipeline",
    "from_fx": "clew.io.torch_fx",
    "to_fx": "clew.io.torch_fx",
    "from_exported": "clew.io.exported",
    "from_torchscript": "clew.io.torchscript",
    "from_tf": "clew.io.tensorflow_graph",
    "to_tf": "clew.io.tensorflow_graph",
    "from_jaxpr": "clew.io.jaxpr",
    "to_jaxpr": "clew.io.jaxpr",
    "Diff": "clew.tools.diff",
    "diff": "clew.tools.diff",
    "explain": "clew.tools.explain",
    "explain_match": "clew.tools.explain_match",
    "extract": "clew.tools.extract",
    "feature_extractor": "clew.tools.extract",
    "flat": "clew.tools.nested",
    "nested": "clew.tools.nested",
    "Logger": "clew.tools.interpreters",
    "Observer": "clew.tools.interpreters",
    "Recorder": "clew.tools.interpreters",
    "compare": "clew.tools.interpreters",
    "find_nan": "clew.tools.interpreters",
    "Profile": "clew.tools.profile",
    "profile": "clew.tools.profile",
    "Report": "clew.tools.report",
    "report": "clew.tools.report",
    "split": "clew.tools.split",
    "exporting": "clew.frameworks.torch.tracing_tools",
    "to_onnx": "clew.io.onnx",
    "load": "clew.io.bundle.files",
    "save": "clew.io.bundle.files",
    "verify": "clew.tools.verify",
    "View": "clew.viewer.page",
    "view": "clew.viewer.page",
    "to_svg": "clew.viewer.svg",
    "to_dot": "clew.viewer.formats",
    "to_mermaid": "clew.viewer.formats",
    "to_model_explorer": "clew.viewer.formats",
    "to_netron": "clew.viewer.formats",
}

__all__ = [
    "PH",
    "ArrayType",
    "Backend",
    "CaptureError",
    "ClewError",
    "CodeGen",
    "Diff",
    "Graph",
    "GraphError",
    "GraphFunction",
    "GraphModule",
    "Guard",
    "GuardError",
    "Interpreter",
    "Logger",
    "Match",
    "Node",
    "Observer",
    "Opcode",
    "Pipeline",
    "Profile",
    "Proxy",
    "ProxyableClassMeta",
    "PythonCode",
    "Recorder",
    "Report",
    "ShapeProp",
    "SourceLine",
    "SubgraphMatcher",
    "TraceError",
    "Tracer",
    "Transformer",
    "Type",
    "View",
    "any_of",
    "backward",
    "bisect",
    "checkpoint",
    "choose",
    "common_subexpressions",
    "compare",
    "compile",
    "cond",
    "constant_folding",
    "convert_dtype",
    "dead_code",
    "decompose",
    "diff",
    "difference",
    "explain",
    "explain_match",
    "exporting",
    "extract",
    "feature_extractor",
    "find_nan",
    "fitted",
    "flat",
    "fold_batch_norm",
    "insert_observers",
    "quantize",
    "for_loop",
    "from_exported",
    "from_fx",
    "from_jaxpr",
    "from_tf",
    "from_torchscript",
    "functionalize",
    "guard",
    "has_side_effect",
    "inline_modules",
    "load",
    "map_aggregate",
    "map_arg",
    "nested",
    "parse",
    "parse_type",
    "place",
    "profile",
    "pure",
    "recognize",
    "reinplace",
    "remaining_writes",
    "remove_dropout",
    "remove_prints",
    "replace_pattern",
    "replace_pattern_with_filters",
    "report",
    "same_graph",
    "save",
    "simplify",
    "split",
    "symbolic_trace",
    "symbolic_types",
    "text_and_objects",
    "to_dot",
    "to_fx",
    "to_jaxpr",
    "to_mermaid",
    "to_model_explorer",
    "to_netron",
    "to_onnx",
    "to_svg",
    "to_text",
    "to_tf",
    "trace",
    "trace_graph",
    "trace_module",
    "translate",
    "type_of",
    "verify",
    "view",
    "while_loop",
    "with_item",
    "wrap",
]


def __getattr__(name: str) -> Any:
    """Names that need a framework are imported when they are first used."""
    if name not in _LATE:
        raise AttributeError(f"module 'clew' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LATE[name]), name)
    globals()[name] = value
    return value


def _view(captured: Any, path: Any = None, **options: Any) -> Any:
    return __getattr__("view")(captured, path, **options)


Graph.viewer = _view


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
