"""Public functions of JAX, and jitted ones, led to the recorder for the time of a capture.

``jax.numpy.sin`` in a program is replaced in ``jax.numpy`` and where the program has imported it by name, so that the
node is what the user wrote. Functions that were kept elsewhere, in tables or partials, are met where all jitted calls
go through; what is not jitted comes to the trace as primitives.
"""

from __future__ import annotations

import contextlib
import functools
import io
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any, TypeAlias

import jax
import jax.experimental
import jax.flatten_util
import numpy

from clew.capture.patches import Patches
from clew.capture.python import imported_names, settings, system
from clew.capture.python.imported_names import noted
from clew.capture.state.reachable import reads_variables
from clew.capture.state.surroundings import Surroundings
from clew.frameworks.jax import names, private, transforms
from clew.frameworks.jax.array_proxy import TracedJaxArray, without_proxies
from clew.frameworks.jax.recorder import JaxRecorder
from clew.frameworks.jax.traced_once import anew
from clew.frameworks.jax.types import kind_of
from clew.ir.source import is_hidden

Current: TypeAlias = Callable[[], "JaxRecorder | None"]

_PLACES = (
    "jax.numpy", "jax.lax", "jax.nn", "jax.random", "jax.numpy.linalg", "jax.numpy.fft", "jax.lax.linalg",
    "jax.scipy.special", "jax.scipy.linalg", "jax.scipy.signal", "jax.scipy.stats", "jax.scipy.fft",
    "jax.scipy.ndimage", "jax.scipy.integrate", "jax.scipy.interpolate", "jax.scipy.spatial.transform", "jax.image",
    "jax.ops",
)  # fmt: skip
_OF_JAX = frozenset("device_put device_get vjp jvp linearize linear_transpose".split())
_CALLING_BACK = ((jax, "pure_callback"), (jax.experimental, "io_callback"))
_TELLING = ((jax.debug, "print"), (jax.debug, "callback"))
_OF_NESTS = frozenset(
    "all flatten leaves map reduce structure transpose broadcast reduce_associative flatten_with_path map_with_path "
    "leaves_with_path all_leaves tree_all tree_flatten tree_leaves tree_map tree_reduce tree_structure tree_transpose "
    "tree_broadcast tree_reduce_associative tree_flatten_with_path tree_leaves_with_path tree_map_with_path "
    "ravel_pytree".split()
)
_CONFIGURED = "a change of JAX's configuration"
_PLAIN = frozenset(
    "issubdtype promote_types iscomplexobj isrealobj isscalar finfo iinfo dtype result_type canonicalize_dtype "
    "set_printoptions get_printoptions printoptions isdtype can_cast iterable ndim shape size "
    "save load savez fromfile key_impl default_prng_impl composite vectorize frompyfunc".split()
)
"""Functions of dtypes and settings, which run as they are, and transforms."""
_FACTS = frozenset(
    "issubdtype isdtype promote_types result_type can_cast canonicalize_dtype iscomplexobj isrealobj ndim shape "
    "size finfo iinfo".split()
)
"""Of these, those that tell something of dtypes and sizes."""
_QUESTIONS = {
    jax: ("default_backend", "device_count", "local_device_count", "process_index", "process_count"),
}
"""What programs ask JAX of this process and this machine, without arguments."""


def install(patches: Patches, current: Current, surroundings: Surroundings) -> None:
    """Let these functions report to the recorder that ``current`` names, if it is recording."""
    names.qualified_name(jax.numpy.sin)  # so that all names are known before they are replaced
    for home in _PLACES:
        module = sys.modules.get(home)
        for name, value in list(vars(module).items()) if isinstance(module, ModuleType) else ():
            if is_recorded(name, value):
                patches.in_dict(vars(module), name, noted(functools.partial(_recording, current=current)))
            elif home == "jax.numpy" and name in _FACTS:
                patches.in_dict(vars(module), name, noted(functools.partial(_asking, current=current)))
    for name in _OF_JAX:
        patches.in_dict(vars(jax), name, noted(functools.partial(_recording, current=current)))
    for module in (jax.tree, jax.tree_util, jax.flatten_util):
        for name in sorted(_OF_NESTS & set(vars(module))):
            patches.in_dict(vars(module), name, noted(functools.partial(_of_nests, current=current)))
    transforms.install(patches, current)
    system.install_questions(patches, _QUESTIONS)
    patches.on_class(private.Configuration, "update", functools.partial(settings.refusing_own, what=_CONFIGURED))
    for place, name in _CALLING_BACK:
        patches.in_dict(vars(place), name, noted(functools.partial(_calling_back, current=current)))
    for place, name in _TELLING:
        patches.in_dict(vars(place), name, noted(functools.partial(_telling, current=current)))
    for kind in (jax.custom_jvp, jax.custom_vjp, jax.numpy.ufunc, private.ScalarMaker):
        patches.on_class(kind, "__call__", functools.partial(_calling, current=current))
    patches.in_dict(private.JIT_MODULE, private.INFER, functools.partial(_inferring, current=current))
    patches.in_dict(private.JIT_MODULE, private.RUN, _running)
    functions = surroundings.functions
    spaces = {id(one.__globals__): one.__globals__ for one in functions}
    cells = [cell for one in functions for cell in one.__closure__ or ()]
    imported_names.replace_in(patches, spaces.values(), cells)
    imported_names.replace_in_defaults(patches, functions)


def is_recorded(name: str, value: Any) -> bool:
    """Whether a public name is that of a function that computes something."""
    if name.startswith("_") or name in _PLAIN or isinstance(value, (type, ModuleType)) or not callable(value):
        return False
    home = str(getattr(value, "__module__", None) or type(value).__module__)
    return home.partition(".")[0] in ("jax", "jaxlib") and not isinstance(value, numpy.dtype)


@functools.cache
def _recording(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is not None and not recorder.open and private.current_trace() is recorder.trace:
            return recorder.perform(original, args, kwargs)  # a piece of the program runs on plain values
        if recorder is None or not recorder.open or recorder.depth:
            return original(*args, **kwargs)
        return recorder.public(original, args, kwargs)

    functools.update_wrapper(call, original)
    call.__clew_original__ = original  # type: ignore[attr-defined]
    return call


@functools.cache
def _asking(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """A function that tells something of dtypes and sizes."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None or not recorder.open or recorder.depth:
            return original(*args, **kwargs)
        return recorder.fact(original, args, kwargs)

    call.__clew_original__ = original  # type: ignore[attr-defined]
    return call


@functools.cache
def _of_nests(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """A function that takes nests apart, in which JAX knows no proxies of lists."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None or not recorder.open or is_hidden(sys._getframe(1).f_code):
            return original(*args, **kwargs)
        return original(*without_proxies(args), **without_proxies(kwargs))

    call.__clew_original__ = original  # type: ignore[attr-defined]
    return call


@functools.cache
def _calling_back(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """A function that calls a function of the program's with arrays of NumPy: one call, whatever is inside."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None or not recorder.is_recording():
            return original(*args, **kwargs)
        return recorder.whole(original, args, kwargs, "it calls back into Python")

    call.__clew_original__ = original  # type: ignore[attr-defined]
    return call


@functools.cache
def _telling(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """A function that only prints, or calls back and gives nothing."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None or not recorder.open or recorder.depth:
            return original(*args, **kwargs)
        recorder.acts.append(functools.partial(original, *recorder.concrete(args), **recorder.concrete(kwargs)))
        return recorder.tell(original, recorder.argument(args), recorder.argument(kwargs))

    call.__clew_original__ = original  # type: ignore[attr-defined]
    return call


@functools.cache
def _calling(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """The call of an object of JAX's that is a function: public ones by name, the user's are traced by JAX."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is not None and not recorder.open:  # a piece of the program runs on plain values
            args, kwargs = recorder.concrete(args), recorder.concrete(kwargs)
        if recorder is None or not recorder.is_recording():
            return original(self, *args, **kwargs)
        if names.is_public(self) or isinstance(self, (jax.numpy.ufunc, type)):
            return recorder.public(self, args, kwargs)
        return transforms.ruled(recorder, self, args, kwargs)

    return call


# ---- jitted functions, wherever they were kept -----------------------------------------------------------------------


class _Met:
    """A jitted call that the recorder makes."""

    def __init__(self, recorder: JaxRecorder, info: Any) -> None:
        self.recorder = recorder
        self.info = info


@functools.cache
def _inferring(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    def infer(fun: Any, info: Any, args: Any, kwargs: Any) -> Any:
        recorder = current() if sys._getframe(1).f_code.co_name == private.CALLER else None
        if recorder is not None and not recorder.open:  # a piece of the program runs on plain values
            args, kwargs = recorder.concrete(args), recorder.concrete(kwargs)
        if recorder is None or not recorder.is_recording():
            return original(fun, info, args, kwargs)
        return _Met(recorder, info), None

    return infer


@functools.cache
def _running(original: Callable[..., Any]) -> Callable[..., Any]:
    def run(p: Any, args_flat: Any, fun: Any, args: Any, kwargs: Any) -> Any:
        if type(p) is not _Met:
            return original(p, args_flat, fun, args, kwargs)
        outs = jitted(p.recorder, fun, p.info, args, kwargs)
        return outs, None, None, None, SimpleNamespace(effects=(), consts=()), None, None, None

    return run


def jitted(recorder: JaxRecorder, fun: Any, info: Any, args: Any, kwargs: Any) -> Any:
    """A call of a jitted function: one of a public function by its name, or traced by JAX."""
    known = names.public_jitted(fun)
    if known is not None:
        return recorder.public(known, args, kwargs)
    options = private.options_in(info)
    if fun in recorder.traced_once.kept and not private.is_special(info):
        return _whole(recorder, fun, info, options, args, kwargs)
    if transforms.is_user_function(fun) and not private.is_special(info) and not _is_of_jax(fun):
        result = transforms.apply(recorder, transforms.ORIGINAL_JIT, fun, options, args, kwargs, is_old=True)
        _check_compiled(recorder, fun, info, args, kwargs)
        return result
    return recorder.staged(transforms.ORIGINAL_JIT(fun, **options), args, kwargs)


def _whole(
    recorder: JaxRecorder, fun: Any, info: Any, options: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A call of a jitted function that stays whole, as JAX goes on with what it has compiled."""
    target = private.jitted_with(info)

    def is_compiled(plain: tuple[Any, ...], named: dict[str, Any]) -> bool:
        return private.compiled_body(fun, info, plain, named) is not None

    run_anew = transforms.ORIGINAL_JIT(anew(fun), **options)
    return recorder.traced_once.whole(target, [fun], (args, kwargs), is_compiled, run_anew)


def _check_compiled(recorder: JaxRecorder, fun: Any, info: Any, args: Any, kwargs: Any) -> None:
    """Raise if JAX has compiled a function when variables around it were others: it goes on with what it compiled."""
    plain, named = recorder.concrete(args), recorder.concrete(kwargs)
    others = 0 if recorder.bodies.open else private.compilations(fun)
    with recorder.paused(), recorder.places.suspended(), contextlib.redirect_stdout(io.StringIO()):
        compiled = None if recorder.bodies.open else private.compiled_body(fun, info, plain, named)
        if others > (compiled is not None) and reads_variables(fun):
            _rely_on_kinds(recorder, (args, kwargs))
        if compiled is None:
            return
        now = private.traced_body(anew(fun), info, plain, named)
    if now != compiled:
        raise recorder.traced_once.refusal(fun, "a variable that it reads has changed since")


def _rely_on_kinds(recorder: JaxRecorder, nest: Any) -> None:
    """With arguments of other kinds JAX goes on with what it has compiled before, whatever variables hold now."""
    for leaf in [leaf for leaf in jax.tree_util.tree_leaves(nest) if type(leaf) is TracedJaxArray]:
        node = recorder.argument(leaf)
        recorder.guard(recorder.create(kind_of, (node,)), kind_of(leaf.plain))


def _is_of_jax(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).partition(".")[0] == "jax"
