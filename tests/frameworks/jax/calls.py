"""Small arguments for every public function of ``jax.lax`` and ``jax.numpy``, and the exceptions with their reasons.

Most functions take one of a few usual sets of arguments: the first set on which a function gives arrays is taken. Those
that take others are listed in ``SPECIAL``; those that are no functions of arrays in ``EXCEPTIONS``.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

VECTOR = jnp.array([0.3, 0.6, 0.9])
MATRIX = jnp.array([[2.0, 0.5, 0.1], [0.5, 3.0, 0.2], [0.1, 0.2, 4.0]])
INTEGERS = jnp.array([2, 0, 1])
TRUTHS = jnp.array([True, False, True])
IMAGE = jnp.arange(32.0).reshape(1, 2, 4, 4)

USUAL: tuple[tuple[Any, ...], ...] = (
    (VECTOR,),
    (VECTOR, VECTOR),
    (MATRIX,),
    (MATRIX, MATRIX),
    (INTEGERS,),
    (INTEGERS, INTEGERS),
    (TRUTHS,),
    (VECTOR, 1),
    (MATRIX, 1),
    (VECTOR, INTEGERS),
    (VECTOR, VECTOR, VECTOR),
    ([VECTOR, VECTOR],),
    (VECTOR, (0,)),
    (MATRIX, (1, 0)),
)


def arrays_in(result: Any) -> list[Any]:
    """The arrays in what a function gave."""
    return [leaf for leaf in jax.tree_util.tree_leaves(result) if isinstance(leaf, jax.Array)]


def public_functions(module: types.ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions that a module shows."""
    for name in sorted(vars(module)):
        value = vars(module)[name]
        if name.startswith("_") or isinstance(value, (type, types.ModuleType)) or name.endswith("_p"):
            continue
        if callable(value) and not isinstance(type(value), type(jnp.float32)):
            yield name, value


Case = tuple[Callable[..., Any], tuple[Any, ...]]
_SCATTER = lax.ScatterDimensionNumbers((), (0,), (0,))
_GATHER = lax.GatherDimensionNumbers((), (0,), (0,))
_PLACES = jnp.array([[2], [0]])
_TWO = jnp.array([5.0, 6.0])
_KERNEL = jnp.ones((1, 2, 2, 2))
_RAGGED = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])


def _newton(function: Callable[..., Any], start: Any) -> Any:
    return lax.fori_loop(0, 5, lambda i, z: z - function(z) / (2 * z), start)


def _scatter(function: Callable[..., Any]) -> Case:
    return lambda x, i, u: function(x, i, u, _SCATTER), (VECTOR, _PLACES, _TWO)


def _along(function: Callable[..., Any]) -> Case:
    """A function over a named axis, inside ``vmap``."""
    return lambda x: jax.vmap(function, axis_name="i")(x), (MATRIX,)


LAX: dict[str, Case] = {
    "all_gather": _along(lambda x: lax.all_gather(x, "i")),
    "all_to_all": _along(lambda x: lax.all_to_all(x, "i", 0, 0)),
    "argmax": (lambda x: lax.argmax(x, 0, jnp.int32), (VECTOR,)),
    "argmin": (lambda x: lax.argmin(x, 0, jnp.int32), (VECTOR,)),
    "associative_scan": (lambda x: lax.associative_scan(jnp.add, x), (VECTOR,)),
    "axis_index": _along(lambda x: x + lax.axis_index("i")),
    "axis_size": _along(lambda x: x + lax.axis_size("i")),
    "bitcast_convert_type": (lambda x: lax.bitcast_convert_type(x, jnp.int32), (VECTOR,)),
    "broadcast_in_dim": (lambda x: lax.broadcast_in_dim(x, (2, 3), (1,)), (VECTOR,)),
    "broadcasted_iota": (lambda x: x + lax.broadcasted_iota(jnp.float32, (2, 3), 1), (VECTOR,)),
    "composite": (lambda x: lax.composite(lambda y: jnp.sin(y) * 2, name="my.sin")(x), (VECTOR,)),
    "concatenate": (lambda x, y: lax.concatenate([x, y], 0), (VECTOR, VECTOR)),
    "cond": (lambda x: lax.cond(x[0] > 0, lambda y: y + 1, lambda y: y - 1, x), (VECTOR,)),
    "conv": (lambda x, k: lax.conv(x, k, (1, 1), "SAME"), (IMAGE, _KERNEL)),
    "conv_general_dilated": (lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME"), (IMAGE, _KERNEL)),
    "conv_general_dilated_local": (
        lambda x, k: lax.conv_general_dilated_local(x, k, (1, 1), "VALID", (2, 2)), (IMAGE, jnp.ones((1, 8, 3, 3)))),
    "conv_general_dilated_patches": (
        lambda x: lax.conv_general_dilated_patches(x, (2, 2), (1, 1), "VALID"), (IMAGE,)),
    "conv_transpose": (
        lambda x, k: lax.conv_transpose(x, k, (1, 1), "SAME"),
        (jnp.moveaxis(IMAGE, 1, -1), jnp.ones((2, 2, 2, 1)))),
    "conv_with_general_padding": (
        lambda x, k: lax.conv_with_general_padding(x, k, (1, 1), [(1, 0), (0, 1)], None, None), (IMAGE, _KERNEL)),
    "convert_element_type": (lambda x: lax.convert_element_type(x, jnp.int32), (VECTOR,)),
    "custom_linear_solve": (
        lambda m, b: lax.custom_linear_solve(lambda v: m @ v, b, lambda f, v: jnp.linalg.solve(m, v), symmetric=True),
        (MATRIX, VECTOR)),
    "custom_root": (
        lambda x: lax.custom_root(lambda y: y**2 - 2, x, _newton, lambda g, y: y / g(1.0)), (jnp.float32(1.5),)),
    "dot_general": (lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ()))), (MATRIX, MATRIX)),
    "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i[0],), (2,)), (VECTOR, INTEGERS)),
    "dynamic_slice_in_dim": (lambda x, i: lax.dynamic_slice_in_dim(x, i[1], 2), (VECTOR, INTEGERS)),
    "dynamic_update_index_in_dim": (
        lambda x, i: lax.dynamic_update_index_in_dim(x, x[0], i[0], 0), (VECTOR, INTEGERS)),
    "dynamic_update_slice": (lambda x, i: lax.dynamic_update_slice(x, x[:2], (i[1],)), (VECTOR, INTEGERS)),
    "dynamic_update_slice_in_dim": (
        lambda x, i: lax.dynamic_update_slice_in_dim(x, x[:2], i[1], 0), (VECTOR, INTEGERS)),
    "empty": (lambda x: x + 0 * lax.empty((3,), jnp.float32), (VECTOR,)),
    "fft": (lambda x: lax.fft(x, "FFT", (3,)), (VECTOR.astype(jnp.complex64),)),
    "fori_loop": (lambda x: lax.fori_loop(0, 3, lambda i, y: y * x + i, x), (VECTOR,)),
    "full": (lambda x: x + lax.full((3,), 2.0), (VECTOR,)),
    "gather": (lambda x, i: lax.gather(x, i, _GATHER, (1,)), (VECTOR, _PLACES)),
    "imag": (lax.imag, (VECTOR.astype(jnp.complex64),)),
    "index_take": (lambda x, i: lax.index_take(x, (i,), (0,)), (MATRIX, INTEGERS)),
    "iota": (lambda x: x + lax.iota(jnp.float32, 3), (VECTOR,)),
    "map": (lambda x: lax.map(lambda y: y * x.sum(), x), (VECTOR,)),
    "pad": (lambda x: lax.pad(x, 0.0, [(1, 2, 1)]), (VECTOR,)),
    "platform_dependent": (lambda x: lax.platform_dependent(x, default=jnp.sin, cuda=jnp.cos), (VECTOR,)),
    "pmean": _along(lambda x: lax.pmean(x, "i")),
    "ppermute": _along(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)])),
    "pshuffle": _along(lambda x: lax.pshuffle(x, "i", [1, 2, 0])),
    "psum": _along(lambda x: lax.psum(x, "i")),
    "pmax": _along(lambda x: lax.pmax(x, "i")),
    "pmin": _along(lambda x: lax.pmin(x, "i")),
    "psum_scatter": _along(lambda x: lax.psum_scatter(x, "i")),
    "pswapaxes": _along(lambda x: lax.pswapaxes(x, "i", 0)),
    "ragged_dot": (lambda x, y, n: lax.ragged_dot(x, y, n), (MATRIX, jnp.ones((2, 3, 2)), jnp.array([1, 2]))),
    "ragged_dot_general": (
        lambda x, y, n: lax.ragged_dot_general(x, y, n, _RAGGED), (MATRIX, jnp.ones((2, 3, 2)), jnp.array([1, 2]))),
    "real": (lax.real, (VECTOR.astype(jnp.complex64),)),
    "reduce": (lambda x: lax.reduce(x, 0.0, lambda a, b: a + 2 * b, (0,)), (MATRIX,)),
    "reduce_and": (lambda x: lax.reduce_and(x, (0,)), (TRUTHS,)),
    "reduce_or": (lambda x: lax.reduce_or(x, (0,)), (TRUTHS,)),
    "reduce_xor": (lambda x: lax.reduce_xor(x, (0,)), (INTEGERS,)),
    "reduce_precision": (lambda x: lax.reduce_precision(x, 5, 3), (VECTOR,)),
    "reduce_window": (lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (1,), "SAME"), (VECTOR,)),
    "reshape": (lambda x: lax.reshape(x, (9,)), (MATRIX,)),
    "rng_bit_generator": (lambda k: lax.rng_bit_generator(k, (2,)), (jnp.arange(4, dtype=jnp.uint32),)),
    "scan": (lambda x: lax.scan(lambda c, y: (c + y * x[0], c), 0.0, x), (VECTOR,)),
    "scatter": _scatter(lax.scatter),
    "scatter_add": _scatter(lax.scatter_add),
    "scatter_apply": (lambda x, i: lax.scatter_apply(x, i, jnp.sin, _SCATTER, update_shape=(2,)), (VECTOR, _PLACES)),
    "scatter_max": _scatter(lax.scatter_max),
    "scatter_min": _scatter(lax.scatter_min),
    "scatter_mul": _scatter(lax.scatter_mul),
    "scatter_sub": _scatter(lax.scatter_sub),
    "select": (lax.select, (TRUTHS, VECTOR, 2 * VECTOR)),
    "slice": (lambda x: lax.slice(x, (0,), (3,), (2,)), (VECTOR,)),
    "slice_in_dim": (lambda x: lax.slice_in_dim(x, 1, 3), (VECTOR,)),
    "split": (lambda x: lax.split(x, (1, 2)), (VECTOR,)),
    "squeeze": (lambda x: lax.squeeze(x, (0,)), (VECTOR[None],)),
    "switch": (lambda i, x: lax.switch(i[0], [jnp.sin, jnp.cos, lambda y: y * x], x), (INTEGERS, VECTOR)),
    "while_loop": (
        lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x)), (VECTOR,)),
    "optimization_barrier": (lambda x, y: lax.optimization_barrier((x, y)), (VECTOR, VECTOR)),
}  # fmt: skip

NUMPY: dict[str, Case] = {
    "empty": (lambda x: x + 0 * jnp.empty((3,)), (VECTOR,)),
    "expand_dims": (lambda x: jnp.expand_dims(x, (0, 2)), (VECTOR,)),
    "indices": (lambda x: x + jnp.indices((3, 3))[0], (MATRIX,)),
    "ones": (lambda x: x + jnp.ones(3), (VECTOR,)),
    "roots": (lambda x: jnp.roots(x, strip_zeros=False), (VECTOR,)),
    "tile": (lambda x: jnp.tile(x, (2, 1)), (VECTOR,)),
    "zeros": (lambda x: x + jnp.zeros(3), (VECTOR,)),
    "apply_along_axis": (lambda x: jnp.apply_along_axis(jnp.cumsum, 0, x), (MATRIX,)),
    "apply_over_axes": (lambda x: jnp.apply_over_axes(jnp.sum, x, (0, 1)), (MATRIX,)),
    "arange": (lambda x: x + jnp.arange(3), (VECTOR,)),
    "argwhere": (lambda x: jnp.argwhere(x > 0.5, size=3), (VECTOR,)),
    "astype": (lambda x: jnp.astype(x, jnp.int32), (VECTOR,)),
    "bartlett": (lambda x: x * jnp.bartlett(3), (VECTOR,)),
    "bincount": (lambda i: jnp.bincount(i, length=4), (INTEGERS,)),
    "blackman": (lambda x: x * jnp.blackman(3), (VECTOR,)),
    "broadcast_to": (lambda x: jnp.broadcast_to(x, (2, 3)), (VECTOR,)),
    "choose": (lambda i, x: jnp.choose(i, [x, x * 2, x * 3], mode="clip"), (INTEGERS, VECTOR)),
    "compress": (lambda x: jnp.compress(jnp.array([True, False, True]), x, size=2), (VECTOR,)),
    "diag_indices": (lambda x: x[jnp.diag_indices(3)], (MATRIX,)),
    "delete": (lambda x: jnp.delete(x, 1), (VECTOR,)),
    "dsplit": (lambda x: jnp.dsplit(x, 2), (jnp.arange(8.0).reshape(2, 2, 2),)),
    "extract": (lambda c, x: jnp.extract(c, x, size=3), (TRUTHS, VECTOR)),
    "eye": (lambda x: x + jnp.eye(3), (MATRIX,)),
    "fill_diagonal": (lambda x: jnp.fill_diagonal(x, 7.0, inplace=False), (MATRIX,)),
    "flatnonzero": (lambda x: jnp.flatnonzero(x > 0.5, size=3), (VECTOR,)),
    "fromfunction": (lambda x: x + jnp.fromfunction(lambda i: i * 2, (3,)), (VECTOR,)),
    "frompyfunc": (lambda x: jnp.frompyfunc(lambda a, b: a * b + 1, 2, 1)(x, x), (VECTOR,)),
    "full": (lambda x: x + jnp.full((3,), 2.0), (VECTOR,)),
    "hamming": (lambda x: x * jnp.hamming(3), (VECTOR,)),
    "hanning": (lambda x: x * jnp.hanning(3), (VECTOR,)),
    "identity": (lambda x: x + jnp.identity(3), (MATRIX,)),
    "insert": (lambda x: jnp.insert(x, 1, 9.0), (VECTOR,)),
    "intersect1d": (lambda x: jnp.intersect1d(x, x * 2, size=3), (VECTOR,)),
    "kaiser": (lambda x: x * jnp.kaiser(3, 2.0), (VECTOR,)),
    "mask_indices": (lambda x: x[jnp.mask_indices(3, jnp.triu, size=6)], (MATRIX,)),
    "moveaxis": (lambda x: jnp.moveaxis(x, 0, 1), (MATRIX,)),
    "nonzero": (lambda x: jnp.nonzero(x > 0.5, size=3), (VECTOR,)),
    "place": (lambda x: jnp.place(x, x > 0.5, jnp.array([1.0, 2.0]), inplace=False), (VECTOR,)),
    "polyfit": (lambda x, y: jnp.polyfit(x, y, 1), (VECTOR, VECTOR**2)),
    "put": (lambda x, i: jnp.put(x, i, x * 2, inplace=False), (VECTOR, INTEGERS)),
    "put_along_axis": (lambda x, i: jnp.put_along_axis(x, i, x * 2, 0, inplace=False), (VECTOR, INTEGERS)),
    "ravel_multi_index": (lambda i: jnp.ravel_multi_index((i, i), (3, 3), mode="clip"), (INTEGERS,)),
    "repeat": (lambda x: jnp.repeat(x, 2), (VECTOR,)),
    "reshape": (lambda x: jnp.reshape(x, (9,)), (MATRIX,)),
    "select": (lambda x: jnp.select([x > 0.8, x > 0.5], [x, x * 2], 0.0), (VECTOR,)),
    "setdiff1d": (lambda x: jnp.setdiff1d(x, x[:1], size=3), (VECTOR,)),
    "setxor1d": (lambda x: jnp.setxor1d(x, x[:1], size=3), (VECTOR,)),
    "swapaxes": (lambda x: jnp.swapaxes(x, 0, 1), (MATRIX,)),
    "tri": (lambda x: x + jnp.tri(3), (MATRIX,)),
    "tril_indices": (lambda x: x[jnp.tril_indices(3)], (MATRIX,)),
    "triu_indices": (lambda x: x[jnp.triu_indices(3)], (MATRIX,)),
    "union1d": (lambda x: jnp.union1d(x, x * 2, size=6), (VECTOR,)),
    "unique": (lambda x: jnp.unique(x, size=3), (VECTOR,)),
    "unique_all": (lambda x: jnp.unique_all(x, size=3), (VECTOR,)),
    "unique_counts": (lambda x: jnp.unique_counts(x, size=3), (VECTOR,)),
    "unique_inverse": (lambda x: jnp.unique_inverse(x, size=3), (VECTOR,)),
    "unique_values": (lambda x: jnp.unique_values(x, size=3), (VECTOR,)),
    "unpackbits": (jnp.unpackbits, (jnp.array([3, 5], dtype=jnp.uint8),)),
    "vectorize": (lambda x, y: jnp.vectorize(lambda a, b: jnp.where(a > b, a, b))(x, y), (VECTOR, VECTOR[::-1])),
    "where": (lambda c, x: jnp.where(c, x, -x), (TRUTHS, VECTOR)),
}  # fmt: skip

_SHAPES = "it computes with shapes and settings, and gives no array"
_DTYPES = "it answers about dtypes or plain facts, and gives no array"
_FILES = "it reads or writes a file, a text or an iterator of Python"
_SHOWN = "it is about how arrays are shown"
_MESH = "it needs several devices and a mesh"

EXCEPTIONS: dict[str, str] = {
    **dict.fromkeys(
        "lax.conv_dimension_numbers lax.conv_general_permutations lax.conv_general_shape_tuple lax.conv_shape_tuple "
        "lax.conv_transpose_shape_tuple lax.padtype_to_pads lax.reduce_window_shape_tuple lax.broadcast_shapes "
        "jnp.broadcast_shapes jnp.shape jnp.size jnp.ndim jnp.einsum_path".split(), _SHAPES),
    **dict.fromkeys(
        "lax.dtype jnp.can_cast jnp.iscomplexobj jnp.isdtype jnp.isrealobj jnp.isscalar jnp.issubdtype jnp.iterable "
        "jnp.promote_types jnp.result_type".split(), _DTYPES),
    **dict.fromkeys(
        "jnp.fromfile jnp.fromiter jnp.fromstring jnp.load jnp.save jnp.savez jnp.from_dlpack jnp.frombuffer".split(),
        _FILES),
    **dict.fromkeys(
        "jnp.array_repr jnp.array_str jnp.get_printoptions jnp.set_printoptions jnp.printoptions".split(), _SHOWN),
    **dict.fromkeys(
        "lax.pbroadcast lax.pcast lax.precv lax.psend lax.ragged_all_to_all lax.with_sharding_constraint".split(),
        _MESH),
    **dict.fromkeys("lax.after_all lax.create_token".split(), "it is about tokens, which order effects, not arrays"),
    "lax.dce_sink": "it returns nothing, and only keeps a value alive inside a compiled program",
    "lax.ConvGeneralDilatedDimensionNumbers": "it is an alias for annotations",
    "lax.PrecisionLike": "it is an alias for annotations",
    "lax.rng_uniform": "JAX itself cannot run it on the CPU: its generator is that of the device",
    "jnp.trim_zeros": "the size of its result depends on the values, so JAX itself cannot trace it",
    "lax.shape_as_value": "it gives an array only for shapes that are not fixed",
}  # fmt: skip
"""Functions that are left out of the walk, and why."""


def case_of(home: str, name: str, function: Callable[..., Any]) -> Case | None:
    """A program that calls a function, and its arrays; None if the usual arguments do not fit."""
    listed = (LAX if home == "lax" else NUMPY).get(name)
    if listed is not None:
        return listed
    for args in USUAL:
        try:
            result = function(*args)
        except Exception:  # these arguments are not this function's
            continue
        if arrays_in(result):
            return _program(function, args)
    return None


def _program(function: Callable[..., Any], args: tuple[Any, ...]) -> Case:
    """Arrays are arguments, all else is written into the program."""
    leaves, structure = jax.tree_util.tree_flatten(args)
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, jax.Array)]

    def program(*arrays: Any) -> Any:
        filled = list(leaves)
        for place, array in zip(places, arrays, strict=True):
            filled[place] = array
        return function(*jax.tree_util.tree_unflatten(structure, filled))

    return program, tuple(leaves[place] for place in places)
