"""``annotate``: give the value behind a proxy a type annotation, which generated code then shows."""

from __future__ import annotations

from typing import Any

from clew.capture.symbolic.proxy import Proxy
from clew.errors import AlreadyAnnotated


def annotate(val: Any, type: Any) -> Any:
    """Annotate ``val``; a value that is no proxy is returned as it is."""
    if not isinstance(val, Proxy):
        return val
    if val.node.type is not None:
        raise AlreadyAnnotated(
            f"{val.node.name} is annotated as {val.node.type} already, so it cannot become {type}",
            fixes=["annotate a value once; for a parameter use the function's signature"],
        )
    val.node.type = type
    return val
