"""Every public function of NumPy that takes arrays, with small arguments to call it on.

``cases()`` gives ``(home, name, calls)``: two calls of the same form and other values. Most arguments are found by
trying common forms; functions that need others are listed, and so are those that are left out, with the reason.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

LEFT_OUT = {
    "numpy.asmatrix": "gives a numpy.matrix, which is not followed",
    "numpy.bmat": "gives a numpy.matrix, which is not followed",
    "numpy.nested_iters": "walks over memory in C",
    "numpy.from_dlpack": "takes memory of another library",
    "numpy.frombuffer": "takes bytes, not arrays",
    "numpy.fromfile": "reads a file",
    "numpy.fromregex": "reads a file",
    "numpy.fromstring": "takes text, not arrays",
    "numpy.genfromtxt": "reads a file",
    "numpy.load": "reads a file",
    "numpy.loadtxt": "reads a file",
    "numpy.save": "writes a file",
    "numpy.savetxt": "writes a file",
    "numpy.savez": "writes a file",
    "numpy.savez_compressed": "writes a file",
    "numpy.info": "prints",
    "numpy.show_config": "prints",
    "numpy.show_runtime": "prints",
    "numpy.test": "runs NumPy's own tests",
    "numpy.linalg.test": "runs NumPy's own tests",
    "numpy.fft.test": "runs NumPy's own tests",
    "numpy.get_include": "takes no arrays",
    "numpy.frompyfunc": "makes a ufunc of a Python function",
    "numpy.datetime_data": "takes a dtype",
    "numpy.isdtype": "takes dtypes",
    "numpy.issubdtype": "takes dtypes",
    "numpy.promote_types": "takes dtypes",
    "numpy.mintypecode": "takes letters",
    "numpy.typename": "takes a letter",
    "numpy.base_repr": "takes a Python number and gives text",
    "numpy.binary_repr": "takes a Python number and gives text",
    "numpy.format_float_positional": "gives text",
    "numpy.format_float_scientific": "gives text",
    "numpy.array2string": "gives text, which is guarded",
    "numpy.array_repr": "gives text, which is guarded",
    "numpy.array_str": "gives text, which is guarded",
    "numpy.isscalar": "asks for a class",
    "numpy.iterable": "asks for a class",
    "numpy.set_printoptions": "a setting",
    "numpy.get_printoptions": "a setting",
    "numpy.printoptions": "a setting",
    "numpy.setbufsize": "a setting",
    "numpy.getbufsize": "a setting",
    "numpy.seterr": "a setting",
    "numpy.geterr": "a setting",
    "numpy.seterrcall": "a setting",
    "numpy.geterrcall": "a setting",
    "numpy.may_share_memory": "tells how arrays lie in memory, which copies of arguments change",
    "numpy.shares_memory": "tells how arrays lie in memory, which copies of arguments change",
    "numpy.einsum_path": "gives a list of texts, which is guarded",
    "ndarray.dump": "writes a file",
    "ndarray.dumps": "gives bytes, which are guarded",
    "ndarray.tobytes": "gives bytes, which are guarded",
    "ndarray.tofile": "writes a file",
    "ndarray.resize": "changes the array itself, which is refused",
    "ndarray.setflags": "changes the array itself, which is refused",
    "ndarray.to_device": "moves nothing",
}
"""Functions that are not called here, and why."""


def _values(seed: int) -> dict[str, Any]:
    draw = np.random.RandomState(seed)
    square = draw.random_sample((3, 3)) + 3 * np.eye(3)
    return {
        "m": draw.random_sample((3, 3)) + 0.1, "n": draw.random_sample((3, 3)) + 0.2, "v": draw.random_sample(6) + 0.1,
        "w": draw.random_sample(6) + 0.3, "i": draw.randint(1, 5, 6), "j": draw.randint(1, 5, 6),
        "b": np.array([True, False, True, True, False, True]), "s": square, "p": square @ square.T,
        "t": draw.random_sample((2, 3, 4)), "c": draw.random_sample(6) + 1j * draw.random_sample(6),
        "sorted": np.sort(draw.random_sample(6)), "bits": draw.randint(0, 2, 8).astype(np.uint8),
        "days": np.array(["2024-01-02", "2024-03-05"], dtype="datetime64[D]") + draw.randint(0, 9),
        "spans": np.array([1, 2], dtype="timedelta64[D]") + draw.randint(1, 9), "x3": draw.random_sample((4, 3)),
        "nan": np.where(draw.random_sample(6) > 2, np.nan, draw.random_sample(6)),
        "words": np.array(["ab", "cd"]),
    }  # fmt: skip


_FORMS = ["v", "m", "v w", "m n", "i", "i j", "b", "t", "c", "s", "v w w", "m 1", "v 2", "m 0 1", "days", "words",
          "spans", "words words"]  # fmt: skip
_SPECIAL: dict[str, str] = {
    "numpy.apply_along_axis": "np.sort 0 m", "numpy.apply_over_axes": "np.sum m [0]", "numpy.arange": "2 9 3",
    "numpy.broadcast_shapes": "(3,1) (1,4)", "numpy.busday_count": "days days",
    "numpy.busday_offset": "days 1 'forward'", "numpy.choose": "[0,1,1] [m[0],m[1]]", "numpy.clip": "v 0.2 0.5",
    "numpy.compress": "b v", "numpy.concatenate": "(v,w)", "numpy.stack": "(v,w)", "numpy.vstack": "(v,w)",
    "numpy.hstack": "(v,w)", "numpy.dstack": "(v,w)", "numpy.column_stack": "(v,w)", "numpy.concat": "(v,w)",
    "numpy.row_stack": "(v,w)", "numpy.block": "[[m,n],[n,m]]", "numpy.copyto": "v w", "numpy.cross": "x3 x3",
    "numpy.delete": "v 1", "numpy.diag_indices": "3", "numpy.digitize": "v sorted", "numpy.einsum": "'ij,jk->ik' m n",
    "numpy.expand_dims": "v 0", "numpy.extract": "b v", "numpy.eye": "3", "numpy.fill_diagonal": "m 2.0",
    "numpy.fromfunction": "np.add (2,3)", "numpy.fromiter": "[1.0,2.0] float", "numpy.full": "(2,3) 1.5",
    "numpy.full_like": "m 1.5", "numpy.geomspace": "1.0 8.0 4", "numpy.identity": "3", "numpy.indices": "(2,3)",
    "numpy.insert": "v 1 0.5", "numpy.interp": "v sorted w", "numpy.ix_": "i j", "numpy.kaiser": "5 2.0",
    "numpy.linspace": "0.0 1.0 5", "numpy.logspace": "0.0 1.0 5", "numpy.lexsort": "(v,w)",
    "numpy.mask_indices": "3 np.triu", "numpy.matrix_transpose": "m", "numpy.moveaxis": "t 0 2",
    "numpy.ones": "(2,3)", "numpy.zeros": "(2,3)", "numpy.packbits": "bits", "numpy.unpackbits": "bits",
    "numpy.pad": "v 2", "numpy.partition": "v 2", "numpy.argpartition": "v 2", "numpy.percentile": "v 30",
    "numpy.quantile": "v 0.3", "numpy.nanpercentile": "v 30", "numpy.nanquantile": "v 0.3",
    "numpy.piecewise": "v [v<0.5,v>=0.5] [-1.0,1.0]", "numpy.place": "v b [0.5]", "numpy.polyfit": "v w 2",
    "numpy.put": "v [0,2] 0.5", "numpy.put_along_axis": "m m.argsort(1) 0.5 1", "numpy.putmask": "v b 0.5",
    "numpy.ravel_multi_index": "(i,j) (9,9)", "numpy.repeat": "v 2", "numpy.require": "v", "numpy.reshape": "v (2,3)",
    "numpy.resize": "v (3,4)", "numpy.roll": "v 2", "numpy.rollaxis": "t 2", "numpy.searchsorted": "sorted v",
    "numpy.select": "[v<0.3,v<0.6] [v,w]", "numpy.split": "v 3", "numpy.array_split": "v 4", "numpy.hsplit": "v 2",
    "numpy.vsplit": "m 3", "numpy.dsplit": "t 2", "numpy.swapaxes": "t 0 2", "numpy.take": "v [0,2]",
    "numpy.take_along_axis": "m m.argsort(1) 1", "numpy.tensordot": "m n 1", "numpy.tile": "v 2", "numpy.tri": "3",
    "numpy.tril_indices": "3", "numpy.triu_indices": "3", "numpy.unravel_index": "i (3,4)", "numpy.vander": "v 3",
    "numpy.where": "b v w", "numpy.broadcast_to": "v (2,6)", "numpy.astype": "v 'float32'", "numpy.bincount": "i",
    "numpy.can_cast": "'f4' 'f8'", "numpy.isin": "i j", "numpy.histogram_bin_edges": "v 4",
    "numpy.histogram2d": "v w 3", "numpy.histogramdd": "x3 3", "numpy.is_busday": "days", "numpy.empty": "(0,3)",
    "numpy.empty_like": "np.zeros((0,3))", "numpy.permute_dims": "t (2,0,1)", "numpy.transpose": "t (2,0,1)",
    "numpy.union1d": "i j", "numpy.setdiff1d": "i j", "numpy.trim_zeros": "v", "numpy.array": "[[1.0,2.0],[3.0,4.0]]",
    "numpy.unstack": "m", "numpy.datetime_as_string": "days", "numpy.min_scalar_type": "i", "numpy.bartlett": "5",
    "numpy.blackman": "5", "numpy.hamming": "5", "numpy.hanning": "5", "numpy.nan_to_num": "nan",
    "numpy.linalg.cholesky": "p", "numpy.linalg.eigh": "p", "numpy.linalg.eigvalsh": "p",
    "numpy.linalg.solve": "s v[:3]", "numpy.linalg.lstsq": "x3 v[:4]", "numpy.linalg.matrix_power": "s 3",
    "numpy.linalg.multi_dot": "[m,n,m]", "numpy.linalg.tensorsolve": "s v[:3]",
    "numpy.linalg.tensorinv": "t.reshape(2,3,4)[:,:,:].sum(2)[:2,:2]+np.eye(2) 1", "numpy.linalg.eig": "p",
    "numpy.linalg.eigvals": "p", "numpy.linalg.cross": "x3 x3", "numpy.roots": "v[:4]",
    "numpy.linalg.tensordot": "m n", "numpy.fft.fftfreq": "6", "numpy.fft.rfftfreq": "6", "numpy.poly": "v[:3]",
    "numpy.polydiv": "v w[:3]", "numpy.ldexp": "v i", "numpy.linalg.vecdot": "m n", "numpy.isfortran": "m",
    "numpy.rot90": "m", "numpy.cov": "m", "numpy.corrcoef": "m", "ndarray.argpartition": "v 2",
    "ndarray.partition": "v 2", "ndarray.astype": "v 'float32'", "ndarray.choose": "i%2 [v,w]",
    "ndarray.clip": "v 0.2 0.5", "ndarray.compress": "v b", "ndarray.dot": "m n", "ndarray.fill": "v 0.5",
    "ndarray.getfield": "v 'f8'", "ndarray.setfield": "v 0.5 'f8'", "ndarray.item": "v 2",
    "ndarray.put": "v [0,2] 0.5", "ndarray.repeat": "v 2", "ndarray.reshape": "v 2 3",
    "ndarray.searchsorted": "sorted v", "ndarray.swapaxes": "t 0 2", "ndarray.take": "v [0,2]",
    "ndarray.transpose": "t 2 0 1", "ndarray.view": "v 'int64'", "ndarray.diagonal": "m", "ndarray.trace": "m",
    "ndarray.conj": "c", "ndarray.conjugate": "c", "ndarray.nonzero": "i",
}  # fmt: skip


def cases() -> Iterator[tuple[str, str]]:
    """All functions, by the module or class that holds them and their name."""
    for home, owner in (("numpy", np), ("numpy.linalg", np.linalg), ("numpy.fft", np.fft), ("ndarray", np.ndarray)):
        for name in sorted(vars(owner)):
            value = getattr(owner, name)
            is_function = callable(value) and not isinstance(value, type) and not name.startswith("_")
            if is_function and f"{home}.{name}" not in LEFT_OUT:
                yield home, name


def program(home: str, name: str) -> Any:
    """A function that calls one of NumPy's, looked up at the call, on the arguments that it is given."""
    if home == "ndarray":

        def call(*args: Any) -> Any:
            return getattr(args[0], name)(*args[1:])
    else:
        owner = {"numpy": np, "numpy.linalg": np.linalg, "numpy.fft": np.fft}[home]

        def call(*args: Any) -> Any:
            return getattr(owner, name)(*args)

    call.__name__ = f"{home}.{name}".replace(".", "_")
    return call


@functools.cache
def form_of(home: str, name: str) -> str | None:
    """The arguments, as text, on which a function works; None if no common form fits."""
    special = _SPECIAL.get(f"{home}.{name}")
    for form in [special] if special is not None else _FORMS:
        try:
            with np.errstate(all="ignore"):
                program(home, name)(*arguments(form, 1))
                program(home, name)(*arguments(form, 2))
            return form
        except Exception:  # noqa: S112, BLE001 - the function wants other arguments
            continue
    return None


def arguments(form: str, seed: int) -> tuple[Any, ...]:
    """The arguments that a text stands for, with values of this seed."""
    scope = {"np": np, **_values(seed)}
    return tuple(eval(part, scope) for part in form.split(" "))  # noqa: S307 - texts of this file
