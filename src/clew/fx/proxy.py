"""torch.fx.proxy: symbolic values, and what turns them into nodes."""

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
from clew.errors import TraceError
from clew.fx.torch_source import definitions_beside
from clew.ir.arguments import map_arg

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "Scope",
    "ScopeContextManager",
    "TraceError",
    "TracerBase",
    "assert_fn",
    "map_arg",
]

__getattr__ = definitions_beside(globals())
