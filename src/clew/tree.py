"""Nests of containers: flatten them to leaves and build them again.

On optree, with two choices made once: None is a leaf, and dicts keep their order. Container types that a user has
registered with torch are honoured: they are adopted when they turn up, without importing torch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import optree

NAMESPACE = "clew"

Spec = optree.PyTreeSpec

_KNOWN_TO_OPTREE = frozenset({"builtins", "collections", "torch.return_types"})
_adopted: set[type] = {list, tuple, dict}
_adopted_count = 0


def register(kind: type, flatten: Callable[[Any], Any], unflatten: Callable[[Any, Any], Any]) -> None:
    """Make ``kind`` a container: ``flatten`` gives (children, context), ``unflatten`` takes (context, children)."""
    _adopted.add(kind)
    optree.register_pytree_node(kind, lambda nest: (*flatten(nest), None), unflatten, namespace=NAMESPACE)


def _adopt_types_of_torch() -> None:
    """Take over the container types that torch's own registry knows."""
    global _adopted_count
    registry = sys.modules.get("torch.utils._pytree")
    if registry is None or len(registry.SUPPORTED_NODES) == _adopted_count:
        return
    _adopted_count = len(registry.SUPPORTED_NODES)
    for kind, definition in list(registry.SUPPORTED_NODES.items()):
        if kind in _adopted or kind.__module__ in _KNOWN_TO_OPTREE or kind.__name__ == "namedtuple":
            continue
        register(kind, definition.flatten_fn, _unflattener(definition.unflatten_fn))


def _unflattener(unflatten_fn: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda context, leaves: unflatten_fn(list(leaves), context)


def flatten(nest: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Spec]:
    """The leaves of a nest from left to right, and its structure."""
    _adopt_types_of_torch()
    with optree.dict_insertion_ordered(True, namespace=NAMESPACE):
        return optree.tree_flatten(nest, is_leaf=is_leaf, none_is_leaf=True, namespace=NAMESPACE)


def unflatten(leaves: Any, spec: Spec) -> Any:
    """The nest of a structure with these leaves."""
    return optree.tree_unflatten(spec, leaves)


SYMBOLIC: list[type] = []
"""Classes whose instances stand for a nest of any structure, and can be indexed as one."""


def tree_flatten_spec(nest: Any, spec: Spec) -> list[Any]:
    """The parts of a nest that stand where the structure has leaves; an error that tells both if they differ.

    A symbolic value in the place of a part of the nest is asked for what it would have there.
    """
    _adopt_types_of_torch()
    if type(nest) is tuple and spec.type is tuple and any(isinstance(part, tuple(SYMBOLIC)) for part in nest):
        parts = zip(nest, spec.children(), strict=True)
        return [leaf for part, inner in parts for leaf in _leaves_at(part, inner)]
    with optree.dict_insertion_ordered(True, namespace=NAMESPACE):
        return spec.flatten_up_to(nest)


def _leaves_at(part: Any, spec: Spec) -> list[Any]:
    """The leaves of a symbolic value, as a structure has them; those of any other are found out as always."""
    if spec.is_leaf():
        return [part]
    if not isinstance(part, tuple(SYMBOLIC)):
        return tree_flatten_spec((part,), optree.treespec_tuple([spec], none_is_leaf=True, namespace=NAMESPACE))
    registry = sys.modules.get("torch.utils._pytree")
    known = registry.SUPPORTED_NODES.get(spec.type) if registry is not None and spec.type not in _BUILT_IN else None
    children = _items(part, spec.entries()) if known is None else known.flatten_fn(part)[0]
    return [leaf for child, inner in zip(children, spec.children(), strict=True) for leaf in _leaves_at(child, inner)]


def _items(part: Any, entries: list[Any]) -> list[Any]:
    return [part[entry] for entry in entries]


_BUILT_IN = (list, tuple, dict)


def tree_map(function: Callable[[Any], Any], nest: Any) -> Any:
    """The nest with ``function`` applied to every leaf."""
    leaves, spec = flatten(nest)
    return unflatten([function(leaf) for leaf in leaves], spec)
