"""What a translation gives: a program of the target framework that holds its weights.

It is called like the original, with the target's arrays; ``params`` and ``state`` are its weights and the rest of its
arrays, by their dotted names; ``pure(params, state, *args)`` computes with others and gives the new state back, so that
the framework's own transforms can be put on it. Its graph, code and guards are those of any capture.
"""

from __future__ import annotations

import functools
from typing import Any

from clew.errors import ClewError, MissingInput
from clew.ir.graph import Graph
from clew.runtime.function import PlainCapture


class Holder:
    """Attributes by name, parts of a list by number."""

    def __getitem__(self, place: int) -> Any:
        return getattr(self, str(place))

    @property
    def _self(self) -> Holder:
        return self


def put(root: Holder, path: str, value: Any) -> None:
    """Set what stands at a dotted path; the holders on the way are made."""
    *way, name = path.split(".")
    for part in way:
        inner = vars(root).get(part)
        if inner is None:
            inner = vars(root)[part] = Holder()
        root = inner
    setattr(root, name, value)


def get(root: Holder, path: str) -> Any:
    """What stands at a dotted path."""
    return functools.reduce(getattr, path.split("."), root)


class Translated(PlainCapture):
    """A program of another framework than that it was written in."""

    framework = ""
    key_example = ""
    """How a call is given what it draws random numbers from."""

    def __init__(self, root: Holder, graph: Graph, name: str = "graph") -> None:
        super().__init__(root, graph, name)
        self._params: tuple[str, ...] = ()
        self._state: tuple[str, ...] = ()
        self.needs_key = False
        """Whether calls draw random numbers, from the key that they are given."""
        self.draws = False
        """Whether calls draw random numbers."""
        self.changes_state = False
        """Whether calls change the state."""
        self.notes: tuple[str, ...] = ()
        """What is different from the original, and why."""

    @classmethod
    def of(cls, graph: Graph, params: dict[str, Any], state: dict[str, Any], name: str) -> Any:
        """The program of a graph with these weights and this state."""
        made = cls(Holder(), graph, name)
        made._hold(params, state)
        return made

    def _with_graph(self, graph: Graph) -> Any:
        made: Any = super()._with_graph(graph)
        for name in ("_params", "_state", "needs_key", "draws", "changes_state", "notes"):
            setattr(made, name, getattr(self, name))
        return made

    def _hold(self, params: dict[str, Any], state: dict[str, Any]) -> None:
        self._params, self._state = tuple(params), tuple(state)
        for path, value in (params | state).items():
            put(self.root, path, value)

    @property
    def params(self) -> dict[str, Any]:
        """The trainable weights, by their dotted names."""
        return {path: get(self.root, path) for path in self._params}

    @params.setter
    def params(self, values: dict[str, Any]) -> None:
        self._check("params", self._params, values)
        for path, value in values.items():
            put(self.root, path, value)

    @property
    def state(self) -> dict[str, Any]:
        """All other arrays and numbers that the program reads and writes, by their dotted names."""
        return {path: get(self.root, path) for path in self._state}

    @state.setter
    def state(self, values: dict[str, Any]) -> None:
        self._check("state", self._state, values)
        for path, value in values.items():
            put(self.root, path, value)

    def _check(self, what: str, paths: tuple[str, ...], values: dict[str, Any]) -> None:
        if set(values) != set(paths):
            odd = sorted(set(values) ^ set(paths))[0]
            raise ClewError(f"{what} must have the names of translated.{what}: {odd!r} is in one of them alone")
        for path in paths:
            have, want = getattr(values[path], "shape", None), getattr(get(self.root, path), "shape", None)
            if want is not None and (have is None or tuple(have) != tuple(want)):
                raise ClewError(f"{path} has the shape {have}, and the program was translated for {tuple(want)}")

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        self._check_key(args, kwargs)
        return super().__call__(*args, **kwargs)

    def _check_key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not self.needs_key:
            return
        usual = self.key_example.partition("=")[0]
        name = next(one for one in (f"random_{usual}", usual) if one in self.__signature__.parameters)
        if self.__signature__.bind(*args, **kwargs).arguments.get(name) is None:
            raise MissingInput(
                f"the program draws random numbers, and the call has no {name}",
                fixes=(f"give one: {self.key_example.replace(usual, name, 1)}",),
            )

    def pure(self, params: dict[str, Any], state: dict[str, Any], /, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """What a call with these weights and this state gives, and the new state; nothing is changed."""
        self._check("params", self._params, params)
        self._check("state", self._state, state)
        self._check_key(args, kwargs)
        root = Holder()
        for path, value in (params | state).items():
            put(root, path, value)
        result = self._compile()[1](root, *args, **kwargs)
        return result, {path: get(root, path) for path in self._state}
