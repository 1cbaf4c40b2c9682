"""Symbolic capture, without an example: proxies run through the program and record it.

``proxy`` records, ``tracer`` directs and patches, ``inputs`` makes the placeholders, ``wrap`` keeps functions as calls,
``real_values`` lets frameworks watch what happens besides proxies.
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
