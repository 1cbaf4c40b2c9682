"""torch.fx._symbolic_trace: programs run on symbolic values."""

from typing import Any

from clew import api
from clew.capture.symbolic.inputs import PH, PHBase, PHWithMeta
from clew.capture.symbolic.tracer import ProxyableClassMeta, Tracer
from clew.capture.symbolic.tracer import is_symbolic_tracing as is_fx_symbolic_tracing
from clew.capture.symbolic.tracer import is_symbolic_tracing as is_fx_tracing
from clew.capture.symbolic.wrap import wrap
from clew.capture.symbolic.wrap import wrapped_functions as _wrapped_fns_to_patch
from clew.capture.symbolic.wrap import wrapped_methods as _wrapped_methods_to_patch
from clew.fx._lazy_graph_module import in_chosen_class
from clew.fx.torch_source import definitions_beside

__all__ = [
    "PH",
    "PHBase",
    "PHWithMeta",
    "ProxyableClassMeta",
    "Tracer",
    "_wrapped_fns_to_patch",
    "_wrapped_methods_to_patch",
    "is_fx_symbolic_tracing",
    "is_fx_tracing",
    "symbolic_trace",
    "wrap",
]


def symbolic_trace(root: Any, concrete_args: Any = None) -> Any:
    """``clew.symbolic_trace``; where torch.fx's words ask for lazy graph modules, the result is one."""
    return in_chosen_class(api.symbolic_trace(root, concrete_args))


__getattr__ = definitions_beside(globals())
