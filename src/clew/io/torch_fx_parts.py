"""Parts of the modules of torch.fx that captures become, for what its graphs have no place for: guards and state.

``GuardModule`` is called first by such a module and checks its guards; ``GuardHook`` checks them for a module that
somebody else has built. ``State`` stands for the module that a program writes to. ``recorded`` lets a tracer of
torch.fx have the nodes as they stand, where it could not run the code on proxies.
"""

from __future__ import annotations

import copy
import inspect
import operator
from collections.abc import Iterable
from typing import Any

import torch
import torch.fx

from clew.capture.symbolic.proxy import Proxy
from clew.ir.arguments import leaves, map_aggregate
from clew.ir.guards import Guard, Input, evaluate, leaves_of

GUARDS = "_clew_guards"
"""The name of the part of a converted module that checks its guards."""


class GuardModule(torch.nn.Module):
    """The guards at the entrance of a captured program, as the part of its module of torch.fx that is called first.

    So torch.fx's interpreters check them too, and what builds other graphs of these nodes takes the call along.
    """

    _is_impure = True
    """So that torch.fx keeps the call, whose value nobody uses."""

    def __init__(self, guards: tuple[Guard, ...], inputs: Iterable[Any]) -> None:
        super().__init__()
        self.guards = guards
        self.names = [node.name for node in inputs]
        """The nodes of the inputs, in the order in which a call gives their values."""
        self.owner: tuple[torch.nn.Module | None] = (None,)
        """The module that guards on attributes are on, of which this is a part: so it is none of its own."""

    def forward(self, *values: Any) -> None:
        """Raise GuardError if an assumption does not hold for these inputs; given proxies, let the call be recorded."""
        proxy = next((leaf for leaf in leaves(values) if _is_proxy(leaf)), None)
        if proxy is not None:
            proxy.tracer.create_proxy("call_module", proxy.tracer.path_of_module(self), values, {})
            return
        _require(self.guards, dict(zip(self.names, values, strict=True)), self.owner[0])

    def __deepcopy__(self, memo: dict[int, Any]) -> GuardModule:
        twin = memo[id(self)] = GuardModule(self.guards, ())  # guards never change
        twin.names, twin.owner = self.names, (copy.deepcopy(self.owner[0], memo),)
        return twin


def _is_proxy(leaf: Any) -> bool:
    mro = type(leaf).__mro__
    return torch.fx.Proxy in mro or Proxy in mro


class GuardHook:
    """Checks the guards of a capture before a call of its module of torch.fx, whose graph has no place for them."""

    def __init__(self, guards: tuple[Guard, ...], inputs: dict[str, str]) -> None:
        self.guards = guards
        self.inputs = inputs
        """The parameters by the names of their nodes."""

    def __call__(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        bound = inspect.signature(module.forward).bind(*args, **kwargs)
        bound.apply_defaults()
        names = {name: target.lstrip("*") for name, target in self.inputs.items()}
        given = {name: bound.arguments[target] for name, target in names.items() if target in bound.arguments}
        if any(torch.fx.Proxy in type(leaf).__mro__ for leaf in leaves(tuple(given.values()))):
            return  # torch.fx traces the module: its graph has no place for guards
        _require(self.guards, given, module)

    def __deepcopy__(self, memo: dict[int, Any]) -> GuardHook:
        return self  # guards never change, and name objects that a copy of the module uses too


def _require(guards: tuple[Guard, ...], given: dict[str, Any], module: torch.nn.Module | None) -> None:
    """Raise GuardError unless those guards hold whose inputs are given, by the names of their nodes."""
    for one in guards:
        if all(leaf.name in given for leaf in leaves_of(one.subject) if isinstance(leaf, Input)):
            one.require(evaluate(one.mapped(lambda leaf: _given(leaf, given)).subject, {}, module))


def _given(leaf: Any, values: dict[str, Any]) -> Any:
    return values[leaf.name] if isinstance(leaf, Input) else leaf


# ---- state -----------------------------------------------------------------------------------------------------------


class State:
    """Stands for the module that a program writes its state to; no module itself, so that no other has it as a part."""

    def __init__(self, module: torch.nn.Module) -> None:
        vars(self)["_module"] = module

    def __getattr__(self, name: str) -> Any:
        if name == "_module" or name.startswith("__"):  # while it is copied, there is none yet
            raise AttributeError(name)
        return getattr(self._module, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._module, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._module, name)


def read_state(state: State, path: str) -> Any:
    """An attribute that the program writes to, too."""
    return operator.attrgetter(path)(state)


# ---- tracers of torch.fx that trace a converted module ---------------------------------------------------------------


def recorded(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a converted module returns in a trace of torch.fx, in a tuple; an empty one where nothing is traced.

    ``given`` are the module and its inputs. Layers are called, so that the tracer decides whether it goes into them.
    """
    proxy = next((leaf for leaf in leaves(given[1:]) if torch.fx.Proxy in type(leaf).__mro__), None)
    if proxy is None:
        return ()
    module, *inputs = given
    tracer = proxy.tracer
    env: dict[torch.fx.Node, Any] = {}
    path = "" if module is tracer.root else f"{tracer.path_of_module(module)}."
    waiting = iter(inputs)

    def value_of(leaf: Any) -> Any:
        return env[leaf] if isinstance(leaf, torch.fx.Node) else leaf

    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    for node in placeholders:
        env[node] = next(waiting)
        _note_in_trace(node, env[node])
    for node in module.graph.nodes:
        if node.op == "placeholder":
            continue
        args, kwargs = map_aggregate(node.args, value_of), map_aggregate(node.kwargs, value_of)
        if node.op == "output":
            return (args[0],)
        if node.op == "call_module":
            env[node] = module.get_submodule(node.target)(*args, **kwargs)
        else:
            target = f"{path}{node.target}" if node.op == "get_attr" else node.target
            env[node] = tracer.create_proxy(node.op, target, tuple(args), dict(kwargs), node.name, node.type)
            _note_in_trace(node, env[node])
    return (None,)


def _note_in_trace(node: torch.fx.Node, recorded: Any) -> None:
    if torch.fx.Proxy in type(recorded).__mro__:
        recorded.node.meta.update({key: value for key, value in node.meta.items() if key not in recorded.node.meta})
