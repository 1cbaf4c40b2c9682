"""torch's linear systems, determinants and factors that are unique; those that are unique but for signs have no rows.

A matrix that is singular is an error in torch and NumPy; JAX and TensorFlow may give infinities or nan instead.
"""

from __future__ import annotations

from typing import Any

from clew.translate.refusals import Untranslatable
from clew.translate.rows.table import refuse_given
from clew.translate.rows.torch_elementwise import TORCH
from clew.translate.values import Array


@TORCH.row("linalg.inv", "inverse", "linalg_inv")
def inverse(xp: Any, x: Array) -> Any:
    """The inverse."""
    return xp.call("linalg.inv", x)


@TORCH.row("linalg.det", "det")
def determinant(xp: Any, x: Array) -> Any:
    """The determinant."""
    return xp.call("linalg.det", x)


@TORCH.row("linalg.cholesky", "cholesky")
def cholesky(xp: Any, x: Array, upper: bool = False) -> Any:
    """The triangular factor with a positive diagonal."""
    if x.dtype.startswith("complex"):
        raise Untranslatable("the factor of a complex matrix")
    found = xp.call("linalg.cholesky", x)
    return xp.matrix_transpose(found) if upper else found


@TORCH.row("linalg.eigvalsh")
def eigenvalues(xp: Any, x: Array, UPLO: str = "L") -> Any:
    """The eigenvalues of a symmetric matrix, in order."""
    refuse_given("eigvalsh", UPLO=None if UPLO == "L" else UPLO)
    return xp.call("linalg.eigvalsh", x)


@TORCH.row("linalg.solve")
def solve(xp: Any, x: Array, y: Array, *, left: bool = True) -> Any:
    """What ``x`` has to be multiplied by to give ``y``."""
    if not left or y.ndim not in (1, x.ndim) or (y.ndim == 1 and x.ndim != 2):
        raise Untranslatable("a system of another form than matrices, or one matrix and one vector")
    return xp.call("linalg.solve", x, y)


@TORCH.row("linalg.solve_triangular")
def solve_triangular(
    xp: Any, x: Array, y: Array, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    """What a triangular matrix has to be multiplied by to give ``y``; the other triangle is not looked at."""
    if not left or x.spec.shape[:-2] != y.spec.shape[:-2]:
        raise Untranslatable("a triangular system from the right, or one for several others")
    return xp.solve_triangular(x, y, upper, unitriangular)
