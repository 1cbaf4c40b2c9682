"""torch.fx.proxy: symbolic values, and what turns them into nodes."""

from clew.capture.symbolic import (
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
]

__getattr__ = definitions_beside(globals())
