"""Symbolic capture, without an example input: proxies run through the program and record it.

The parts: ``proxy`` (what records), ``tracer`` (who directs), ``inputs`` (placeholders), ``wrap`` (functions kept as
calls), ``classes`` (constructions kept as calls), ``patches`` (put back whatever happens), ``refusals`` (the errors).
"""

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
from clew.capture.symbolic.tracer import ProxyableClassMeta, Tracer
from clew.capture.symbolic.wrap import wrap

__all__ = [
    "PH",
    "Attribute",
    "GraphAppendingTracer",
    "PHBase",
    "PHWithMeta",
    "ParameterProxy",
    "Proxy",
    "ProxyableClassMeta",
    "Scope",
    "ScopeContextManager",
    "Tracer",
    "TracerBase",
    "assert_fn",
    "wrap",
]
