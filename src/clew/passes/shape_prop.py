"""Shapes, dtypes and devices of all values, found by running the graph on an example.

Every node gets its ``value_type`` and, in ``meta``, ``type`` and the ``tensor_meta`` that users of torch.fx read.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from clew.ir.arguments import map_aggregate
from clew.ir.guests import guest_of, module_guest
from clew.ir.interpreter import Interpreter
from clew.ir.node import Node
from clew.ir.types import ArrayType, Type, type_of


class TensorMetadata(NamedTuple):
    """What is noted of a tensor."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


class ShapeProp(Interpreter):
    """Runs a module on an example and notes the type of every value on its node.

    Bodies of branches and loops get the types of what ran in them; a size that differs from round to round gets a name.
    With ``fake_mode``, a FakeTensorMode of torch, nothing is computed: the example and the module's state are faked.
    """

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)
        self.fake_mode = fake_mode
        self.real_module = self.module
        self._noted: set[Node] = set()
        self.fake_module: Any = None
        if fake_mode is not None:
            guest = module_guest(gm)
            self.fake_module = None if guest is None else guest.faked(gm, fake_mode)
            self.module = self.fake_module or gm

    def run(
        self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True, **kwargs: Any
    ) -> Any:
        """Run on ``args`` and named ones; types of an earlier run are forgotten."""
        self._noted.clear()
        return super().run(*args, initial_env=initial_env, enable_io_processing=enable_io_processing, **kwargs)

    def run_node(self, n: Node) -> Any:
        """Run a node and note the type of its value."""
        result = super().run_node(n)
        n.value_type = _joined(n, type_of(result)) if n in self._noted else type_of(result)
        self._noted.add(n)
        n.meta["type"] = type(result)
        noted = map_aggregate(result, _metadata)
        if any(isinstance(part, TensorMetadata) for part in _parts(noted)):
            n.meta["tensor_meta"] = noted
        return result

    def propagate(self, *args: Any, **kwargs: Any) -> Any:
        """Run on ``args`` and named ones; returns the result."""
        if self.fake_mode is None:
            return self.run(*args, **kwargs)
        with self.fake_mode:
            return self.run(*map(self._fake, args), **{name: self._fake(value) for name, value in kwargs.items()})

    def _fake(self, value: Any) -> Any:
        return self.fake_mode.from_tensor(value) if hasattr(value, "dtype") else value


def _joined(node: Node, found: Type) -> Type | None:
    """The type of a node that has run before, in another round: the old one and the new one as far as they agree."""
    before = node.value_type
    if before == found:
        return found
    if not isinstance(before, ArrayType) or not isinstance(found, ArrayType):
        return None
    if (before.dtype, before.device, len(before.shape)) != (found.dtype, found.device, len(found.shape)):
        return None
    pairs = enumerate(zip(before.shape, found.shape, strict=True))
    sizes = tuple(old if old == new else f"{node.name}_{axis}" for axis, (old, new) in pairs)
    return ArrayType(found.dtype, sizes, found.device)


def _metadata(value: Any) -> Any:
    if not (hasattr(value, "shape") and hasattr(value, "dtype") and hasattr(value, "stride")):
        return value
    quantized = bool(getattr(value, "is_quantized", False))
    guest = guest_of(value)
    layout = None if guest is None else guest.memory_format(value)
    return TensorMetadata(value.shape, value.dtype, value.requires_grad, value.stride(), layout, quantized, {})


def _parts(noted: Any) -> list[Any]:
    if isinstance(noted, TensorMetadata):
        return [noted]
    if isinstance(noted, (list, tuple)):
        return [part for item in noted for part in _parts(item)]
    return [part for item in noted.values() for part in _parts(item)] if isinstance(noted, dict) else []
