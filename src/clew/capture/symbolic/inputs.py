"""The inputs of a traced function: its signature becomes placeholders, concrete arguments are fixed.

``PH`` marks, inside of nested concrete arguments, what stays an input. A fixed value keeps its placeholder, and the
graph checks at run time that callers pass the same value, so that a specialised graph is never silently wrong.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

from clew import tree
from clew.capture.symbolic.proxy import Proxy
from clew.codegen.python import PyTreeCodeGen, PyTreeInfo
from clew.errors import ConcreteArgumentsMismatch, NotTraceable, TraceError
from clew.ir.arguments import BASE_TYPES
from clew.ir.guests import guest_of, present

if TYPE_CHECKING:
    from clew.capture.symbolic.tracer import Tracer

_VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


class PHBase:
    """A place in concrete arguments that stays an input."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """A place that stays an input and hands its attributes on to the placeholder node."""

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


def _assert_is_none(value: Any, message: str) -> None:
    if value is not None:
        raise AssertionError(message)


class RootInputs:
    """Makes the placeholders of one function for one tracer."""

    def __init__(self, tracer: Tracer, root_fn: Callable[..., Any], is_module: bool, concrete_args: Any) -> None:
        self.tracer = tracer
        self.root_fn = root_fn
        self.analysed = inspect.unwrap(root_fn)
        self.code = self.analysed.__code__  # type: ignore[attr-defined]
        self.signature = inspect.signature(self.analysed)
        self.annotations = annotations_of(self.analysed)
        self.is_module = is_module
        self.concrete_args = concrete_args

    def make(self) -> tuple[Callable[..., Any], list[Any]]:
        """The function to call and the values, proxies mostly, to call it with."""
        total = self.code.co_argcount + self.code.co_kwonlyargcount
        if self.is_module and total == 0:
            raise ConcreteArgumentsMismatch("``self`` argument cannot be part of *args expansion!")
        names = list(self.code.co_varnames[int(self.is_module) : total])
        first = [self.tracer.root] if self.is_module else []
        if self._is_all_variadic(total):
            return self.root_fn, [*first, *self._numbered_inputs()]
        self.concrete_args = self._by_name(names)
        args = [self._input(name) for name in names]
        root_fn = self.root_fn
        if self.code.co_kwonlyargcount or self.code.co_flags & _VARIADIC:
            args += self._variadic_inputs(total)
            root_fn = self._taking_positions(root_fn, len(first), args)
        return self._with_nests(root_fn, first, args, names)

    def _taking_positions(self, root_fn: Callable[..., Any], bound: int, args: list[Any]) -> Callable[..., Any]:
        """The function with every parameter given by position; a decorator around it is called, not passed over."""
        if root_fn is self.analysed:
            return positional_only(root_fn, bound + len(args))
        if self.code.co_flags & _VARIADIC:
            raise TraceError(
                f"{root_fn.__name__} is decorated and takes *args or **kwargs",
                why="a symbolic value cannot stand for *args or **kwargs across the call that a decorator makes",
                fixes=["write a function around it with plain parameters, and trace that"],
            )
        total = self.code.co_argcount
        by_name = self.code.co_varnames[total : total + self.code.co_kwonlyargcount]

        def call(*values: Any) -> Any:
            return root_fn(*values[:total], **dict(zip(by_name, values[total:], strict=True)))

        return functools.wraps(root_fn)(call)

    def _is_all_variadic(self, total: int) -> bool:
        given = isinstance(self.concrete_args, tuple) and len(self.concrete_args) > 0
        return given and bool(self.code.co_flags & _VARIADIC) and total == 1

    def _numbered_inputs(self) -> list[Any]:
        inputs = []
        for place, value in enumerate(self.concrete_args):
            proxy = self.tracer.create_proxy("placeholder", f"input_{place}", (), {})
            _hand_on(value, proxy)
            inputs.append(proxy)
        return inputs

    def _by_name(self, names: list[str]) -> Any:
        given = self.concrete_args
        if not isinstance(given, tuple):
            return given
        if len(names) != len(given):
            raise ConcreteArgumentsMismatch(
                f"Tracing expected {len(names)} arguments but got {len(given)} concrete arguments",
                fixes=["give one value for each parameter (PH for those that stay inputs), or a dict of some by name"],
            )
        return dict(zip(names, given, strict=True))

    def _variadic_inputs(self, total: int) -> list[Any]:
        names = iter(self.code.co_varnames[total:])
        inputs = []
        if self.code.co_flags & inspect.CO_VARARGS:
            inputs.append(self._input("*" + next(names)))
        if self.code.co_flags & inspect.CO_VARKEYWORDS:
            inputs.append(self._input("**" + next(names)))
        return inputs

    def _input(self, name: str) -> Any:
        return self.tracer._proxy_placeholder(name, self.concrete_args, self.signature, self.analysed)

    def _with_nests(
        self, root_fn: Callable[..., Any], first: list[Any], args: list[Any], names: list[str]
    ) -> tuple[Callable[..., Any], list[Any]]:
        """Nested arguments are flattened: the graph knows leaves, its code takes and gives nests."""
        leaves, in_spec = tree.flatten(tuple(args))
        if all(child.is_leaf() for child in in_spec.children()):
            return root_fn, [*first, *args]
        codegen = PyTreeCodeGen(PyTreeInfo(names, in_spec, None))
        self.tracer.graph.set_codegen(codegen)

        def on_leaves(*values: Any) -> Any:
            nests = tree.unflatten(list(values[len(first) :]), in_spec)
            results, out_spec = tree.flatten(root_fn(*first, *nests))
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return results

        return on_leaves, [*first, *leaves]


def placeholder_for(
    tracer: Tracer, name: str, concrete_args: dict[str, Any] | None, signature: inspect.Signature, function: Any
) -> Any:
    """The proxy of one parameter, or its concrete value with proxies where the nest has ``PH``."""
    parameter = signature.parameters.get(name.lstrip("*"))
    has_default = parameter is not None and parameter.default is not inspect.Parameter.empty and name[0] != "*"
    default = (parameter.default,) if has_default and parameter is not None else ()
    if concrete_args is None or name not in concrete_args:
        annotation = annotations_of(function).get(name)
        keyword_only = parameter is not None and parameter.kind is inspect.Parameter.KEYWORD_ONLY
        kind = {"keyword_only": True} if keyword_only else {}
        return tracer.create_proxy("placeholder", name, default, kind, type_expr=annotation)
    count = 0

    def fix(value: Any) -> Any:
        nonlocal count
        count += 1
        proxy = tracer.create_proxy("placeholder", f"{name}_{count}", default, {})
        if isinstance(value, PHBase):
            _hand_on(value, proxy)
            return proxy
        _check_at_run_time(tracer, proxy, name, value)
        return value

    return tree.tree_map(fix, concrete_args[name])


def _check_at_run_time(tracer: Tracer, proxy: Proxy, name: str, value: Any) -> None:
    if value is None:
        message = f"{name} has been specialized to have value None but got another value"
        tracer.create_proxy("call_function", _assert_is_none, (proxy, message), {})
    elif type(value) in BASE_TYPES or _is_constant(value):
        message = f"{name} has been specialized to have value {value} but got another value"
        assertion = next((found for guest in present() if (found := guest.assertion()) is not None), None)
        if assertion is None:
            raise TraceError(f"no framework is there to check that {name} is {value!r}")
        assertion(proxy == value, message)
    else:
        warnings.warn(
            f"{name} has been specialized to a {type(value).__name__} that cannot be checked at run time: "
            "callers must pass the same value as during tracing",
            stacklevel=2,
        )


def _is_constant(value: Any) -> bool:
    guest = guest_of(value)
    if guest is None or isinstance(value, guest.array_class or ()):
        return False
    return isinstance(value, guest.constant_classes)


def _hand_on(mark: Any, proxy: Proxy) -> None:
    """Attributes that the user set on a placeholder mark go to the node."""
    if isinstance(mark, PHBase) and mark is not PH:
        for key, value in vars(mark).items():
            if not hasattr(proxy.node, key):
                setattr(proxy.node, key, value)


def annotations_of(function: Any) -> dict[str, Any]:
    """The annotations of a function, evaluated where they are strings that can be."""
    try:
        return inspect.get_annotations(function, eval_str=True)
    except (NameError, SyntaxError, TypeError, AttributeError):
        return dict(getattr(function, "__annotations__", {}))


def positional_only(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """The function with ``*args``, ``**kwargs`` and keyword-only parameters as plain positional ones.

    A proxy can then stand for the whole of ``args``, which no ordinary call could bring about.
    """
    plain = inspect.unwrap(function)
    if not isinstance(plain, FunctionType):
        raise TraceError(f"{function!r} is no Python function, so its *args cannot be traced")
    code = plain.__code__.replace(
        co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=plain.__code__.co_flags & ~_VARIADIC
    )
    return FunctionType(code, plain.__globals__, plain.__name__, plain.__defaults__, plain.__closure__)


def as_function(target: Any) -> FunctionType:
    """A plain function for a bound method, partial or callable object, with the same parameters."""
    if not callable(target) or isinstance(target, BuiltinFunctionType):
        raise NotTraceable(
            f"Expected FunctionType, got {type(target)}: {target!r} cannot be traced",
            why="it has no Python code that proxies could run through",
            fixes=["give a Python function or a module; to record a builtin, call it in one: lambda x: builtin(x)"],
        )
    parameters = list(inspect.signature(target).parameters.values())
    if any(parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) for parameter in parameters):
        raise NotTraceable(
            f"{target!r} has *args or **kwargs",
            why="only plain functions can be traced with such",
            fixes=["write a function around it with plain parameters"],
        )
    named = [parameter for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    placed = [parameter for parameter in parameters if parameter not in named]
    taken = ", ".join([*(p.name for p in placed), *(["*"] if named else []), *(p.name for p in named)])
    given = ", ".join([*(p.name for p in placed), *(f"{p.name}={p.name}" for p in named)])
    made: dict[str, Any] = {"target": target}
    exec(f"def call({taken}):\n    return target({given})\n", made)  # names are identifiers of a real signature
    function: FunctionType = made["call"]
    function.__name__ = getattr(target, "__name__", type(target).__name__)
    function.__defaults__ = tuple(p.default for p in placed if p.default is not inspect.Parameter.empty) or None
    function.__kwdefaults__ = {p.name: p.default for p in named if p.default is not inspect.Parameter.empty}
    return function


def led_by(first: Callable[[tuple[Any, ...]], tuple[Any, ...]], function: FunctionType) -> FunctionType:
    """``function``, but ``first`` is given all arguments before; what it returns in a tuple is the result.

    An empty tuple lets ``function`` run. The parameters stand in the code itself, because tracers read them there, and
    make plain ones of ``*args`` and ``**kwargs``.
    """
    marks: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    parameters = inspect.signature(function).parameters
    starred = any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in parameters.values())
    taken, given = [], []
    for name, one in parameters.items():
        if one.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            taken.append("*")
            starred = True
        taken.append(marks.get(one.kind, "") + name)
        given.append(f"{name}={name}" if one.kind is inspect.Parameter.KEYWORD_ONLY else taken[-1])
    made: dict[str, Any] = {"first_": first, "function_": function}
    exec(
        f"def forward({', '.join(taken)}):\n"
        f"    led = first_(({', '.join(parameters)},))\n"
        f"    return led[0] if led else function_({', '.join(given)})\n",
        made,
    )  # names are identifiers of a real signature
    led: FunctionType = made["forward"]
    functools.update_wrapper(led, function)
    del led.__wrapped__  # type: ignore[attr-defined]  # tracers shall see this one, which is not decorated
    led.__defaults__, led.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return led
