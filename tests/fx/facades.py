"""The two flat namespaces that the suite compares: torch.fx's own names gathered in one object, and clew.fx.

In: the name of a facade. Out: an object with one attribute a public name. clew.fx is imported only when asked for, so
that the half of the suite that runs on torch.fx collects and runs by itself.
"""

import importlib
import types
from typing import Any

import torch.fx
import torch.fx._symbolic_trace
import torch.fx.annotate
import torch.fx.graph
import torch.fx.graph_module
import torch.fx.immutable_collections
import torch.fx.interpreter
import torch.fx.node
import torch.fx.operator_schemas
import torch.fx.passes.shape_prop
import torch.fx.passes.utils.matcher_utils
import torch.fx.proxy
import torch.fx.subgraph_rewriter

NAMES = {
    torch.fx._symbolic_trace: ["symbolic_trace", "Tracer", "wrap", "PH", "PHBase", "PHWithMeta", "ProxyableClassMeta"],
    torch.fx.proxy: [
        "Proxy", "Attribute", "ParameterProxy", "TraceError", "TracerBase", "GraphAppendingTracer", "Scope",
        "ScopeContextManager", "assert_fn",
    ],
    torch.fx.graph: ["Graph", "CodeGen", "PythonCode", "_PyTreeCodeGen", "_PyTreeInfo"],
    torch.fx.graph_module: ["GraphModule"],
    torch.fx.node: ["Node", "Argument", "Target", "map_arg", "map_aggregate", "has_side_effect"],
    torch.fx.interpreter: ["Interpreter", "Transformer"],
    torch.fx.subgraph_rewriter: ["replace_pattern", "replace_pattern_with_filters", "Match", "ReplacedPatterns"],
    torch.fx.passes.utils.matcher_utils: ["SubgraphMatcher", "InternalMatch"],
    torch.fx.immutable_collections: ["immutable_list", "immutable_dict"],
    torch.fx.operator_schemas: [
        "ArgsKwargsPair", "check_for_mutable_operation", "create_type_hint", "get_signature_for_torch_op",
        "normalize_function", "normalize_module", "type_matches",
    ],
    torch.fx.passes.shape_prop: ["ShapeProp", "TensorMetadata"],
}  # fmt: skip


def torch_facade() -> types.SimpleNamespace:
    """torch.fx with the names of its submodules lifted to one level."""
    flat = {name: getattr(module, name) for module, names in NAMES.items() for name in names}
    return types.SimpleNamespace(**flat, annotate=torch.fx.annotate.annotate)


TORCH = torch_facade()


def clew_facade() -> Any:
    """clew.fx, imported at the first use, its module ``annotate`` lifted like torch's."""
    module = importlib.import_module("clew.fx")
    flat = {name: value for name, value in vars(module).items() if not name.startswith("__")}
    return types.SimpleNamespace(**{**flat, "annotate": module.annotate.annotate})


def load(name: str) -> Any:
    """The facade called ``name``: "torch" or "clew"."""
    return TORCH if name == "torch" else clew_facade()


def importable() -> list[Any]:
    """Every facade that can be imported here: what a module needs that registers its functions with ``wrap``."""
    try:
        return [TORCH, clew_facade()]
    except ModuleNotFoundError:
        return [TORCH]
