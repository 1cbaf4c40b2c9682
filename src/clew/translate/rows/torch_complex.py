"""torch's complex numbers and Fourier transforms."""

from __future__ import annotations

from typing import Any

from clew.translate.refusals import Untranslatable
from clew.translate.rows.table import taking
from clew.translate.rows.torch_elementwise import TORCH
from clew.translate.rows.torch_shapes import MODES, unfold
from clew.translate.values import Array


@TORCH.row("complex")
def complex_row(xp: Any, real: Array, imag: Array) -> Any:
    """Complex numbers of their two parts."""
    return xp.complex_of(*xp.broadcast_arrays(real, imag))


@TORCH.row("polar")
def polar(xp: Any, absolute: Array, angle: Array) -> Any:
    """Complex numbers of their sizes and angles."""
    return xp.complex_of(absolute * xp.cos(angle), absolute * xp.sin(angle))


@TORCH.row("view_as_complex")
def view_as_complex(xp: Any, x: Array) -> Any:
    """Pairs along the last axis as complex numbers."""
    return xp.complex_of(x[..., 0], x[..., 1])


@TORCH.row("view_as_real")
def view_as_real(xp: Any, x: Array) -> Any:
    """Complex numbers as pairs along a new last axis."""
    return xp.stack([xp.real(x), xp.imag(x)], axis=-1)


@TORCH.row("attribute.real")
def real_part(xp: Any, x: Array) -> Any:
    """The real part."""
    return xp.real(x) if x.dtype.startswith("complex") else x


@TORCH.row("attribute.imag")
def imaginary_part(xp: Any, x: Array) -> Any:
    """The imaginary part."""
    return xp.imag(x)


# ---- Fourier transforms ----------------------------------------------------------------------------------------------


def _ready(xp: Any, x: Array) -> Array:
    """Whole numbers as floats: torch computes in its default dtype, others in 64 bits."""
    is_ready = xp.is_floating(x) or x.dtype.startswith("complex")
    return x if is_ready else xp.astype(x, "float32")


def _one_axis(name: str) -> None:
    def row(xp: Any, input: Array, n: Any = None, dim: int = -1, norm: Any = None) -> Any:
        options = {"n": n} if n is not None else {}
        options |= {"norm": norm} if norm is not None else {}
        return xp.to_wanted(xp.fourier(name, _ready(xp, input), axis=dim, **options))

    TORCH.add(f"fft.{name}", row)


def _several_axes(name: str, usual: Any) -> None:
    def row(xp: Any, input: Array, s: Any = None, dim: Any = usual, norm: Any = None) -> Any:
        if dim is None:
            dim = tuple(range(-(input.ndim if s is None else len(s)), 0))
        options = {"s": tuple(s)} if s is not None else {}
        options |= {"norm": norm} if norm is not None else {}
        axes = (dim,) if isinstance(dim, int) else tuple(dim)
        return xp.to_wanted(xp.fourier(name, _ready(xp, input), axes=axes, **options))

    TORCH.add(f"fft.{name}", row)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    _one_axis(_name)
for _name in ("fft2", "ifft2", "rfft2", "irfft2"):
    _several_axes(_name, (-2, -1))
for _name in ("fftn", "ifftn", "rfftn", "irfftn"):
    _several_axes(_name, None)


@TORCH.row("fft.fftshift")
def fftshift(xp: Any, input: Array, dim: Any = None) -> Any:
    """The frequency zero in the middle."""
    return xp.call("fft.fftshift", input, axes=dim)


@TORCH.row("fft.ifftshift")
def ifftshift(xp: Any, input: Array, dim: Any = None) -> Any:
    """The frequency zero in front again."""
    return xp.call("fft.ifftshift", input, axes=dim)


def _scaled(normalization: int, backwards: bool) -> str:
    """The name that NumPy has for what a transform is divided by: nothing (0), the root of the number of items, that
    number (2)."""
    if normalization == 1:
        return "ortho"
    divides = normalization == 2
    return ("backward" if backwards else "forward") if divides else ("forward" if backwards else "backward")


@TORCH.row("aten._fft_r2c")
def real_to_complex(xp: Any, x: Array, dim: Any, normalization: int, onesided: bool) -> Any:
    """The transform of real numbers."""
    norm = _scaled(normalization, False)
    name = "rfftn" if onesided else "fftn"
    return xp.to_wanted(xp.fourier(name, x, axes=tuple(dim), norm=norm))


@TORCH.row("aten._fft_c2c")
def complex_to_complex(xp: Any, x: Array, dim: Any, normalization: int, forward: bool) -> Any:
    """The transform of complex numbers, or back."""
    name = "fftn" if forward else "ifftn"
    return xp.to_wanted(xp.fourier(name, x, axes=tuple(dim), norm=_scaled(normalization, not forward)))


@TORCH.row("aten._fft_c2r")
def complex_to_real(xp: Any, x: Array, dim: Any, normalization: int, last_dim_size: Any) -> Any:
    """The transform back to real numbers."""
    if len(dim) != 1:
        raise Untranslatable("a transform back to real numbers along several axes")
    return xp.to_wanted(xp.fourier("irfft", x, n=last_dim_size, axis=dim[0], norm=_scaled(normalization, True)))


@TORCH.row("stft", "functional.stft")
@taking("input", "n_fft", hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect",
        normalized=False, onesided=None, return_complex=None, align_to_window=None)  # fmt: skip
def stft(xp: Any, given: Any) -> Any:
    """The Fourier transforms of windows along the last axis."""
    x, n = given.input, given.n_fft
    if x.dtype.startswith("complex") or not given.return_complex or not isinstance(n, int):
        raise Untranslatable("an stft of complex numbers, or whose result is not complex")
    hop, length = given.hop_length or n // 4, given.win_length or n
    if given.center:
        x = xp.pad(x, [*((0, 0),) * (x.ndim - 1), (n // 2, n // 2)], mode=MODES[given.pad_mode])
    frames = unfold(xp, x, -1, n, hop)
    if given.window is not None:
        before = (n - length) // 2
        shorter = length != n
        window = xp.pad(given.window, [(before, n - length - before)]) if shorter else given.window
        frames = frames * window
    elif length != n:
        raise Untranslatable("an stft with a shorter window of ones")
    name = "fft" if given.onesided is False else "rfft"
    found = xp.fourier(name, frames, axis=-1, **({"norm": "ortho"} if given.normalized else {}))
    return xp.to_wanted(xp.swapaxes(found, -1, -2))
