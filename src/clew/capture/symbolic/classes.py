"""``ProxyableClassMeta``: classes whose construction is recorded when an argument is a proxy.

An instance that was made before the trace becomes a constant attribute of the root instead.
"""

from __future__ import annotations

from typing import Any

from clew.capture.symbolic.wrap import find_proxy

_proxyable: dict[type, None] = {}


class ProxyableClassMeta(type):
    """The metaclass of classes that may be built from symbolic values inside a traced program."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        _proxyable.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        instance = cls.__new__(cls)  # type: ignore[call-overload]
        proxy = find_proxy(args, kwargs)
        if proxy is not None:
            return proxy.tracer.create_proxy("call_function", cls, args, kwargs)
        cls.__init__(instance, *args, **kwargs)  # type: ignore[misc]
        return instance


def is_proxyable(kind: type) -> bool:
    """True for classes made by ``ProxyableClassMeta``."""
    return kind in _proxyable
