"""torch.fx.experimental.proxy_tensor: torch's own, since torch itself traces with it; what it makes becomes Clew's."""

from functools import wraps
from typing import Any

from torch.fx.experimental import proxy_tensor

from clew.fx._lazy_graph_module import in_chosen_class
from clew.io.torch_fx import from_fx

__all__ = ["make_fx"]


def make_fx(*args: Any, **options: Any) -> Any:
    """A function that traces what it is called with, through autograd, into ATen calls: Clew's GraphModule."""
    trace = proxy_tensor.make_fx(*args, **options)

    @wraps(trace)
    def traced(*args: Any, **kwargs: Any) -> Any:
        return in_chosen_class(from_fx(trace(*args, **kwargs)))

    return traced


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(proxy_tensor, name)
