"""AutoGraph's branches, loops and builtins with numbers of Python in them.

In ``i += 1`` under ``while tf.reduce_sum(x) < 1`` the variable is a number of Python for a program that runs eagerly.
Here it is a ``Traced`` value, which the branch or loop carries as the operation that computes it. A variable that is a
number at first and a tensor later, or a number on one side of a branch only, is carried as whatever it is when the
graph runs: the code that Clew writes is Python's. A side that raises an error of the program's raises it in the graph.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import numpy
import tensorflow as tf
from tensorflow.python.autograph.impl import api as autograph_api
from tensorflow.python.autograph.operators import (
    conditional_expressions,
    control_flow,
    exceptions,
    logical,
    py_builtins,
)
from tensorflow.python.ops import cond, cond_v2

from clew.capture.control_flow.raising import is_raised
from clew.capture.patches import Patches
from clew.capture.python.callers import is_of_program
from clew.capture.recording.list_proxies import StateListProxy
from clew.frameworks.tensorflow.importer import Notes
from clew.frameworks.tensorflow.scalars import (
    NUMBERS,
    Traced,
    TracedShape,
    has_traced,
    is_symbolic,
    itself,
    python_call,
    sampled,
    size_of,
    traced_call,
)
from clew.frameworks.tensorflow.variables_around import check_branch

if TYPE_CHECKING:
    from clew.frameworks.tensorflow.tracing import Tracing

Current = Callable[[], "Tracing | None"]


def key_of(tensor: Any) -> tuple[int, str]:
    """What tells symbolic tensors apart."""
    return id(tensor.graph), tensor.name


def install(patches: Patches, current: Current) -> None:
    """Let AutoGraph's operators take traced values, of the tracing that ``current`` gives."""

    generated = vars(autograph_api._TRANSPILER.get_extra_locals()["ag__"])
    for (module, name), make in _OPERATORS.items():
        for names in (generated, vars(module)):
            if name in names:
                patches.in_dict(names, name, _Making(make, current))


class _Making:
    """Makes the replacement of a function, for the tracing that ``current`` gives."""

    def __init__(self, make: Callable[[Any, Current], Any], current: Current) -> None:
        self.make, self.current = make, current

    def __call__(self, original: Any) -> Any:
        return self.make(original, self.current)


def truth(tracing: Tracing, value: Any) -> Any:
    """What a branch asks, as a tensor of booleans where it is known only when the graph runs."""
    if isinstance(value, Traced):
        is_bool = type(value.sample) is bool
        return value.tensor if is_bool else python_call(tracing, bool, (value,), {}, tf.bool)
    if is_symbolic(value) and value.dtype != tf.bool:
        return python_call(tracing, bool, (value,), {}, tf.bool)
    return value


def _truth_first(original: Any, current: Current) -> Any:
    @functools.wraps(original)
    def statement(*args: Any, **kwargs: Any) -> Any:
        tracing = current()
        if tracing is not None and args:
            args = (truth(tracing, args[0]), *args[1:])
        elif tracing is not None and "pred" in kwargs:
            kwargs["pred"] = truth(tracing, kwargs["pred"])
        return original(*args, **kwargs)

    return statement


def _equality(original: Any, current: Current) -> Any:
    """``==`` of a tensor and a traced number compares as TensorFlow does; of two numbers as Python does."""

    def compare(a: Any, b: Any) -> Any:
        if current() is not None and (isinstance(a, Traced) or isinstance(b, Traced)):
            is_equal = original.__name__ == "eq"
            return a == b if is_equal else a != b
        return original(a, b)

    compare.__name__ = original.__name__
    return compare


def _not(original: Any, current: Current) -> Any:
    def not_(a: Any) -> Any:
        tracing = current()
        if tracing is None or not (isinstance(a, Traced) or is_symbolic(a)):
            return original(a)
        return traced_call(tracing, operator.not_, (a,), {}, True)

    return not_


def _lazy(stops_when: bool) -> Callable[[Any, Current], Any]:
    """``and`` and ``or`` give one of their values; of two booleans of TensorFlow TensorFlow's own."""

    def make(original: Any, current: Current) -> Any:
        def lazy(a: Any, b: Any) -> Any:
            tracing = current()
            first = a()
            if tracing is None or not isinstance(first, Traced):
                return original(lambda: first, b)
            test = truth(tracing, first)
            sides = (lambda: first, b) if stops_when else (b, lambda: first)
            return tf.cond(test, *sides)

        return lazy

    return make


# ---- loops -----------------------------------------------------------------------------------------------------------


class TracedRange:
    """``range`` of traced numbers."""

    def __init__(self, tracing: Tracing, *bounds: Any, items: Callable[[Any], Any] = lambda place: place) -> None:
        self.tracing = tracing
        self.start, self.stop, self.step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        self.items = items
        """What a loop gets at each place."""

    def fixed(self) -> NoReturn:
        """Whoever looks at it in any other way than by a loop relies on what it follows from."""
        raise self.tracing.needs_known(next(one for one in (self.stop, self.start, self.step) if has_traced(one)))

    def __iter__(self) -> Any:
        self.fixed()

    def __len__(self) -> int:
        self.fixed()

    def __getitem__(self, index: Any) -> Any:
        self.fixed()


def _fors(original: Any, current: Current) -> Any:
    def for_stmt(
        iterated: Any, extra_test: Any, body: Any, get_state: Any, set_state: Any, symbol_names: Any, opts: Any
    ) -> Any:
        tracing = current()
        get_state = get_state if tracing is None else _state_of(tracing, get_state)
        if tracing is None or not isinstance(iterated, TracedRange) or isinstance(iterated.step, Traced):
            return original(iterated, extra_test, body, get_state, set_state, symbol_names, opts)
        place = iterated.start

        def get() -> Any:
            return (place, *get_state())

        def put(values: Any) -> None:
            nonlocal place
            place, *rest = values
            set_state(tuple(rest))

        def step() -> None:
            nonlocal place
            body(iterated.items(place))
            place = place + iterated.step

        def test() -> Any:
            more = place < iterated.stop if iterated.step > 0 else place > iterated.stop
            if extra_test is None:
                return truth(tracing, more)
            return tf.cond(truth(tracing, more), lambda: truth(tracing, extra_test()), lambda: False)

        control_flow._tf_while_stmt(test, step, get, put, ("", *symbol_names), _without(opts))

    return for_stmt


def _without(opts: Any) -> dict[str, Any]:
    return {name: value for name, value in (opts or {}).items() if name != "iterate_names"}


def _whiles(original: Any, current: Current) -> Any:
    def while_stmt(test: Any, body: Any, get_state: Any, set_state: Any, symbol_names: Any, opts: Any) -> Any:
        tracing = current()
        if tracing is None:
            return original(test, body, get_state, set_state, symbol_names, opts)
        state = _state_of(tracing, get_state)
        return original(lambda: truth(tracing, test()), body, state, set_state, symbol_names, opts)

    return while_stmt


def _state_of(tracing: Tracing, get_state: Any) -> Any:
    """What AutoGraph reads before a loop because its body sets it: an item, say, of a list that is empty where the
    program does not enter the loop."""

    def read() -> Any:
        try:
            return get_state()
        except Exception:
            tracing.failed_inside = True
            raise

    return read


def _ifs(original: Any, current: Current) -> Any:
    def if_stmt(
        cond: Any, body: Any, orelse: Any, get_state: Any, set_state: Any, symbol_names: Any, nouts: Any
    ) -> None:
        tracing = current()
        if tracing is not None:
            cond, get_state = truth(tracing, cond), _state_of(tracing, get_state)
        return original(cond, body, orelse, get_state, set_state, symbol_names, nouts)

    return if_stmt


_INTERNAL = "<internal iterate>"
"""The name of AutoGraph's own counters."""


class _Becomes(BaseException):
    """Variables of a loop that start as numbers and become tensors of some dtypes, or numbers of another kind."""

    def __init__(self, found: dict[int, Any]) -> None:
        self.found = found


def _loops(original: Any, current: Current) -> Any:
    def _tf_while_stmt(test: Any, body: Any, get_state: Any, set_state: Any, symbol_names: Any, opts: Any) -> None:
        tracing = current()
        if tracing is None:
            return original(test, body, get_state, set_state, symbol_names, opts)
        before = get_state()
        becoming: dict[int, Any] = {}
        while True:
            loop = _Loop(tracing, before, get_state, set_state, becoming, symbol_names)
            try:
                original(loop.asked(test), loop.around(body), loop.get, loop.put, symbol_names, dict(opts or {}))
                break
            except _Becomes as found:
                becoming |= found.found
                set_state(before)
        _name(tracing.notes, symbol_names, get_state())

    return _tf_while_stmt


class _Loop:
    """One attempt at a loop: which of its variables are numbers, and which begin as numbers and become tensors."""

    def __init__(
        self, tracing: Tracing, before: Any, get_state: Any, set_state: Any, becoming: dict[int, Any], names: Any
    ) -> None:
        self.tracing, self.get_state, self.set_state, self.becoming = tracing, get_state, set_state, becoming
        self.before = before
        self.numeric = {
            place: one.sample if isinstance(one, Traced) else one
            for place, (one, name) in enumerate(zip(before, names, strict=True))
            if is_number(one) and place not in becoming and name != _INTERNAL
        }
        self.internal = {place for place, name in enumerate(names) if name == _INTERNAL}

    def get(self) -> Any:
        """The variables as TensorFlow shall carry them; attributes of objects are as before until the loop is known."""
        found = tuple(self._carried(place, value) for place, value in enumerate(self.get_state()))
        self.set_state(self.before)
        return found

    def asked(self, test: Any) -> Any:
        """The test of the loop."""

        def ask() -> Any:
            answer = truth(self.tracing, test())
            self.set_state(self.before)
            return answer

        return ask

    def _carried(self, place: int, value: Any) -> Any:
        if not is_number(value) or place in self.internal:
            return value
        if place in self.numeric:
            return unwrapped(self.tracing, value, self.numeric[place])
        dtype = self.becoming.get(place)
        return unwrapped(self.tracing, value) if dtype is None else plain_in_place(self.tracing, value, dtype)

    def put(self, values: Any) -> None:
        """The variables as the program shall see them."""
        seen = []
        for place, value in enumerate(values):
            is_numeric = place in self.numeric and is_symbolic(value)
            seen.append(Traced(self.tracing, value, self.numeric[place]) if is_numeric else value)
            if is_symbolic(value) and (is_numeric or place in self.becoming):
                self.tracing.notes.numbers.add(key_of(value))
        self.set_state(tuple(seen))

    def around(self, body: Any) -> Any:
        """The body, after which variables are looked at."""

        def watched() -> None:
            body()
            ends = {place: value for place, value in enumerate(self.get_state()) if place in self.numeric}
            found = {place: value.dtype for place, value in ends.items() if is_symbolic(value)}
            for place, value in ends.items():
                kind = type(value.sample) if isinstance(value, Traced) else type(value)
                if is_number(value) and kind is not type(self.numeric[place]):
                    found[place] = _refused_kind(self.tracing)
            if found:
                raise _Becomes(found)

        return watched


def _refused_kind(tracing: Tracing) -> NoReturn:
    raise tracing.refuse(
        "a number of Python becomes one of another kind in a loop over tensors",
        "what it is follows from how often the loop runs",
        "start it as what it becomes: 0.0 instead of 0",
    )


def is_number(value: Any) -> bool:
    """Whether a value is a number of Python, or stands for one, or for one of NumPy."""
    return type(value) in NUMBERS or isinstance(value, Traced)


def unwrapped(tracing: Tracing, value: Any, like: Any = None) -> Any:
    """The tensor that stands for a number."""
    if isinstance(value, Traced):
        return value.tensor
    found = traced_call(tracing, itself, (value,), {}, value)
    return found.tensor


def plain_in_place(tracing: Tracing, value: Any, dtype: Any) -> Any:
    """A number, as it is, where the graph has a tensor of some dtype otherwise."""
    made = python_call(tracing, itself, (value,), {}, dtype)
    tracing.notes.numbers.add(key_of(made))
    return made


# ---- branches --------------------------------------------------------------------------------------------------------


def _naming(original: Any, current: Current) -> Any:
    def _tf_if_stmt(
        cond: Any, body: Any, orelse: Any, get_state: Any, set_state: Any, symbol_names: Any, nouts: Any
    ) -> None:
        tracing = current()
        if tracing is None:
            return original(cond, body, orelse, get_state, set_state, symbol_names, nouts)
        before = get_state()
        check_branch(tracing, set_state, symbol_names[nouts:])

        def get() -> Any:
            """What a side leaves; attributes of objects are as before, until all sides are known."""
            left = get_state()
            set_state(before)
            return left

        original(cond, body, orelse, get, set_state, symbol_names, nouts)
        _name(tracing.notes, symbol_names[:nouts], get_state())

    return _tf_if_stmt


def _verifying(original: Any, current: Current) -> Any:
    """Numbers need not be tensors of one dtype."""

    def verify_single_cond_var(name: Any, body_var: Any, orelse_var: Any) -> Any:
        if current() is None or not (is_number(body_var) or is_number(orelse_var)):
            return original(name, body_var, orelse_var)

    return verify_single_cond_var


def _conds(original: Any, current: Current) -> Any:
    def cond_v2(pred: Any, true_fn: Any, false_fn: Any, *rest: Any, **options: Any) -> Any:
        tracing = current()
        if tracing is None:
            return original(pred, true_fn, false_fn, *rest, **options)
        sides = _Sides(tracing)
        run = lambda one, other: original(pred, one, other, *rest, **options)  # noqa: E731
        return sides.join((true_fn, false_fn), run, pred)

    return cond_v2


def _cases(original: Any, current: Current) -> Any:
    def indexed_case(branch_index: Any, branch_fns: Any, *rest: Any, **options: Any) -> Any:
        tracing = current()
        if tracing is None:
            return original(branch_index, branch_fns, *rest, **options)
        sides = _Sides(tracing)
        return sides.join(tuple(branch_fns), lambda *fns: original(branch_index, list(fns), *rest, **options))

    return indexed_case


class _Raises(BaseException):
    """A side of a branch raises an error of the program's own."""

    def __init__(self, place: int, error: Exception) -> None:
        self.place, self.error = place, error


def is_raised_by_program(error: BaseException) -> bool:
    """Whether a ``raise`` of the program itself has raised an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and is_raised(error) and is_of_program(trace.tb_frame)


def raise_if(test: Any, answer: bool, kind: type[Exception], args: tuple[Any, ...]) -> None:
    """Raise an error of the program's own if a test has this answer."""
    if bool(test) is answer:
        raise kind(*args)


def raise_in_graph(tracing: Tracing, test: Any, answer: bool, error: BaseException) -> None:
    """Let the graph raise an error where a test has this answer."""
    if not all(type(one) in (str, *NUMBERS) and "Tensor" not in str(one) for one in error.args):
        raise tracing.refuse(
            f"the program raises a {type(error).__name__} that holds more than text and numbers",
            "the graph would raise it with what is known now",
        )
    made = python_call(tracing, raise_if, (test, answer, type(error), error.args), {}, tf.bool)
    tracing.notes.numbers.add(key_of(made))


def _asserts(original: Any, current: Current) -> Any:
    """``assert`` raises Python's error, which TensorFlow's operation does not."""

    def assert_stmt(expression1: Any, expression2: Any) -> Any:
        tracing = current()
        test = expression1 if tracing is None else truth(tracing, expression1)
        if tracing is None or not is_symbolic(test):
            return original(expression1, expression2)
        told = expression2()
        raise_in_graph(tracing, test, False, AssertionError(*(() if told is None else (told,))))

    return assert_stmt


class _Sides:
    """The sides of a branch, which may give numbers."""

    def __init__(self, tracing: Tracing) -> None:
        self.tracing = tracing
        self.ends: list[list[Any]] = []
        self.wanted: dict[int, Any] = {}
        """The dtype of values that are numbers on one side, and tensors on another."""

    def join(self, sides: tuple[Any, ...], run: Callable[..., Any], pred: Any = None) -> Any:
        """Run the branch with sides that hand over numbers, until all sides agree.

        A side that raises does so in the graph, and the other one is all that can follow.
        """
        while True:
            self.ends = []
            wanted = dict(self.wanted)
            try:
                result = run(*[self._noting(place, side) for place, side in enumerate(sides)])
            except _Raises as found:
                if pred is None:
                    raise found.error from None
                raise_in_graph(self.tracing, pred, not found.place, found.error)
                return sides[1 - found.place]()
            except (TypeError, ValueError):
                if not self._learn():
                    raise
                continue
            if self._learn() and self.wanted != wanted:
                continue
            return self._wrapped(result)

    def _noting(self, number: int, side: Any) -> Any:
        @functools.wraps(side)
        def run(*args: Any, **kwargs: Any) -> Any:
            try:
                result = side(*args, **kwargs)
            except Exception as error:
                if is_raised_by_program(error):
                    raise _Raises(number, error) from error
                raise
            leaves = tf.nest.flatten(result)
            self.ends.append(leaves)
            handed = [self._handed(place, leaf) for place, leaf in enumerate(leaves)]
            return tf.nest.pack_sequence_as(result, handed)

        return run

    def _handed(self, place: int, leaf: Any) -> Any:
        if isinstance(leaf, (str, bytes)):
            raise self.tracing.refuse(
                "text is chosen by a branch over tensors", "in a graph of TensorFlow it would be a tensor"
            )
        if not is_number(leaf):
            return leaf
        if place in self.wanted:
            return plain_in_place(self.tracing, leaf, self.wanted[place])
        return unwrapped(self.tracing, leaf)

    def _learn(self) -> bool:
        """Note where sides differ; whether something was learned."""
        known = dict(self.wanted)
        for place, leaves in enumerate(zip(*self.ends, strict=False)):
            numbers = [leaf for leaf in leaves if is_number(leaf)]
            tensors = [leaf for leaf in leaves if is_symbolic(leaf)]
            if numbers and tensors:
                self.wanted[place] = tensors[0].dtype
            elif numbers and len({type(sampled(number)) for number in numbers}) > 1:
                self.wanted[place] = tf.float64
        return self.wanted != known

    def _wrapped(self, result: Any) -> Any:
        leaves = tf.nest.flatten(result)
        return tf.nest.pack_sequence_as(result, [self._seen(place, leaf) for place, leaf in enumerate(leaves)])

    def _seen(self, place: int, leaf: Any) -> Any:
        given = [end[place] for end in self.ends if place < len(end)]
        if not is_symbolic(leaf) or not any(map(is_number, given)):
            return leaf
        self.tracing.notes.numbers.add(key_of(leaf))
        if not all(map(is_number, given)):
            return leaf
        samples = [sampled(one) for one in given]
        return Traced(self.tracing, leaf, max(samples, key=lambda one: type(one) is float), place in self.wanted)


def _name(notes: Notes, names: Any, values: Any) -> None:
    for name, value in zip(names, values, strict=False):
        tensor = value.tensor if isinstance(value, Traced) else value
        if is_symbolic(tensor) and str(name).isidentifier():
            notes.names[key_of(tensor)] = str(name)


# ---- builtins --------------------------------------------------------------------------------------------------------


def _overloads(original: Any, current: Current) -> Any:
    def overload_of(function: Any) -> Any:
        tracing = current()
        found = original(function)
        make = None if tracing is None or not isinstance(function, Hashable) else _BUILTINS.get(function)
        if tracing is not None and make is None and is_of_numpy(function):
            make = _of_numpy
        return found if make is None else functools.partial(make, tracing, function, found)

    return overload_of


def _calls(original: Any, current: Current) -> Any:
    """Functions of TensorFlow that look at numbers by Python's means are given them as tensors."""

    def _call_unconverted(f: Any, args: Any, kwargs: Any, *rest: Any, **options: Any) -> Any:
        tracing = current()
        if tracing is None:
            return original(f, args, kwargs, *rest, **options)
        values = [*args, *(kwargs or {}).values()]
        if is_of_numpy(f) and (any(map(is_symbolic, values)) or has_traced(values)):
            return _of_numpy(tracing, f, f, *args, **(kwargs or {}))
        shapes = [one for one in values if isinstance(one, TracedShape)]
        if f is tf.ensure_shape and shapes:
            tf.debugging.assert_equal(tf.shape(values[0]), tf.shape(shapes[0].tensor))
            return tf.ensure_shape(values[0], tf.TensorShape(shapes[0]._dims))
        if not has_traced(values) or not str(getattr(f, "__module__", "")).startswith("tensorflow."):
            return original(f, args, kwargs, *rest, **options)
        wanted = len(tracing.wanted)
        with suppress(TypeError, ValueError):
            if f is not tf.TensorArray:  # which keeps the number that it is given
                return original(f, args, kwargs, *rest, **options)
        named = {name: tensors_for(one) for name, one in (kwargs or {}).items()}
        result = original(f, tuple(map(tensors_for, args)), named, *rest, **options)
        del tracing.wanted[wanted:]
        return result

    return _call_unconverted


def is_of_numpy(function: Any) -> bool:
    """Whether a function is one of NumPy's, which takes tensors as arrays."""
    home = str(getattr(function, "__module__", "") or "")
    return isinstance(function, numpy.ufunc) or home.partition(".")[0] == "numpy"


def _of_numpy(tracing: Tracing, function: Any, found: Any, *args: Any, **kwargs: Any) -> Any:
    """A function of NumPy takes the arrays that tensors hold."""
    arrays = [tracing.numpy_of(one) if is_symbolic(one) else one for one in args]
    named = {name: tracing.numpy_of(one) if is_symbolic(one) else one for name, one in kwargs.items()}
    traced = [one for one in (*arrays, *named.values()) if isinstance(one, Traced)]
    return traced[0].apply(function, tuple(arrays), named) if traced else found(*args, **kwargs)


def tensors_for(value: Any) -> Any:
    """A tensor in the place of a traced number."""
    return tf.convert_to_tensor(value) if isinstance(value, Traced) else value


def _converted(tracing: Tracing, function: Any, found: Any, *args: Any, **kwargs: Any) -> Any:
    """``int(x)``, ``float(x)`` and ``bool(x)`` of tensors and traced values."""
    args = tuple(tf.convert_to_tensor(one) if isinstance(one, tf.Variable) else one for one in args)
    if len(args) == 1 and (is_symbolic(args[0]) or isinstance(args[0], Traced)):
        if isinstance(args[0], Traced) and type(args[0].sample) is function:
            return args[0]
        return traced_call(tracing, function, args, {}, function(1))
    return function(*args, **kwargs)


def _on_numbers(tracing: Tracing, function: Any, found: Any, *args: Any, **kwargs: Any) -> Any:
    """``abs``, ``min`` and the like of traced values; those of tensors are AutoGraph's."""
    if not has_traced(args):
        return found(*args, **kwargs)
    values = args[0] if len(args) == 1 and type(args[0]) in (list, tuple) else args
    if function in (min, max) and len({type(sampled(one)) for one in values}) > 1:
        for one in values:
            if isinstance(one, Traced):
                raise tracing.needs_known(one)
    traced = next(one for one in _flat(args) if isinstance(one, Traced))
    if function is sum:
        return sum(*args, **kwargs)
    if function is divmod:
        return args[0] // args[1], args[0] % args[1]
    return traced.apply(function, args, kwargs)


def _flat(values: Any) -> Any:
    for one in values:
        if type(one) in (list, tuple):
            yield from _flat(one)
        else:
            yield one


def _length(tracing: Tracing, function: Any, found: Any, *args: Any) -> Any:
    (value,) = args
    if type(value) is StateListProxy:
        more = list.__len__(value) - list.__len__(value.original)
        length = tracing.lengths[id(value)][1]
        return length.apply(operator.add, (length, more)) if more else length
    if isinstance(value, TracedShape):
        return value.rank
    if isinstance(value, Traced):
        return value.apply(len, (value,))
    if is_symbolic(value) and value.shape.rank:
        known = value.shape[0]
        return traced_call(tracing, size_of, (value, 0), {}, 2) if known is None else known
    return len(value) if is_symbolic(value) else found(value)


def _range(tracing: Tracing, function: Any, found: Any, *args: Any) -> Any:
    if any(isinstance(one, tf.Tensor) for one in args):
        args = tuple(traced_call(tracing, int, (one,), {}, 1) if is_symbolic(one) else one for one in args)
    return TracedRange(tracing, *args) if has_traced(args) else found(*args)


def _open_length(tracing: Tracing, value: Any) -> Any:
    """The length of a tensor, if it is not known."""
    is_open = is_symbolic(value) and value.shape.rank and value.shape[0] is None
    return traced_call(tracing, size_of, (value, 0), {}, 2) if is_open else None


def _enumerated(tracing: Tracing, function: Any, found: Any, *args: Any, **kwargs: Any) -> Any:
    count = _open_length(tracing, args[0])
    if count is None or kwargs or not all(type(one) is int for one in args[1:]):
        return found(*args, **kwargs)
    first = args[1] if len(args) > 1 else 0
    return TracedRange(tracing, count, items=lambda place: (place + first, args[0][place]))


def _zipped(tracing: Tracing, function: Any, found: Any, *args: Any, **kwargs: Any) -> Any:
    counts = [_open_length(tracing, one) for one in args]
    if kwargs or not counts or any(count is None for count in counts):
        return found(*args, **kwargs)
    count = functools.reduce(lambda one, other: one.apply(min, (one, other)), counts)
    return TracedRange(tracing, count, items=lambda place: tuple(one[place] for one in args))


def _kind(tracing: Tracing, function: Any, found: Any, *args: Any) -> Any:
    if len(args) == 1 and isinstance(args[0], Traced):
        return args[0].__class__
    return type(*args)


def _of_tensors(tracing: Tracing, function: Any, found: Any, *args: Any, **kwargs: Any) -> Any:
    """``sorted``, ``any`` and ``all`` of a tensor would be tensors, which they are not for Python."""
    if any(is_symbolic(one) for one in args):
        raise tracing.refuse(
            f"the program calls {function.__name__}() of a tensor",
            "what it gives is known only when the graph runs",
            "use tf.sort, tf.reduce_any or tf.reduce_all",
        )
    return found(*args, **kwargs)


def _asked(tracing: Tracing, function: Any, found: Any, *args: Any) -> Any:
    if len(args) == 2 and isinstance(args[0], Traced):
        tracing.rely_on_type(args[0])
    return isinstance(*args)


def _of_math(tracing: Tracing, function: Any, found: Any, *args: Any) -> Any:
    """Functions of ``math`` take tensors, too: as the numbers that they hold."""
    if not has_traced(args) and not any(map(is_symbolic, args)):
        return function(*args)
    given = tuple(traced_call(tracing, float, (one,), {}, 1.0) if is_symbolic(one) else one for one in args)
    return next(one for one in given if isinstance(one, Traced)).apply(function, given)


_OPERATORS: dict[tuple[Any, str], Callable[[Any, Current], Any]] = {
    (autograph_api, "_call_unconverted"): _calls,
    (cond, "cond"): _truth_first,
    (cond_v2, "cond_v2"): _conds,
    (cond_v2, "indexed_case"): _cases,
    (conditional_expressions, "if_exp"): _truth_first,
    (control_flow, "if_stmt"): _ifs,
    (control_flow, "while_stmt"): _whiles,
    (control_flow, "for_stmt"): _fors,
    (control_flow, "_tf_while_stmt"): _loops,
    (control_flow, "_tf_if_stmt"): _naming,
    (control_flow, "verify_single_cond_var"): _verifying,
    (exceptions, "assert_stmt"): _asserts,
    (logical, "and_"): _lazy(False),
    (logical, "or_"): _lazy(True),
    (logical, "not_"): _not,
    (logical, "eq"): _equality,
    (logical, "not_eq"): _equality,
    (py_builtins, "overload_of"): _overloads,
}
"""The replacements of functions of AutoGraph and of TensorFlow's branches."""
_BUILTINS: dict[Any, Callable[..., Any]] = {
    int: _converted, float: _converted, bool: _converted, len: _length, range: _range, type: _kind,
    enumerate: _enumerated, zip: _zipped, sorted: _of_tensors,
    any: _of_tensors, all: _of_tensors, isinstance: _asked,
    **dict.fromkeys((function for function in vars(math).values() if callable(function)), _of_math),
    **dict.fromkeys((abs, min, max, sum, round, pow, divmod), _on_numbers),
}  # fmt: skip
"""The replacements of Python's functions in code that AutoGraph has converted."""
