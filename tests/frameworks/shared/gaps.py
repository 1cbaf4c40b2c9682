"""What a framework cannot do of the shared list, as data: each with the reason, and a test that it is still so."""

from __future__ import annotations

_JAX_ARRAYS = "arrays of JAX cannot be written to; x.at[0].set(...) makes new ones"
_EAGER = "eager tensors of TensorFlow cannot be written to"

PROGRAMS: dict[tuple[str, str], str] = {
    ("jax", "random_numbers"): "JAX has no stream of random numbers that everybody shares; draws are functions of keys",
    ("jax", "written_items"): _JAX_ARRAYS,
    ("jax", "written_arguments"): _JAX_ARRAYS,
    ("tensorflow", "written_items"): _EAGER,
    ("tensorflow", "written_arguments"): _EAGER,
    ("tensorflow", "prints"): "Python's print would be done once, by the trace; tf.print prints at each call",
}
"""By framework and program: the capture is refused, or the framework itself raises."""

QUESTIONS: dict[tuple[str, str], str] = {
    ("numpy", "compiled"): "NumPy has no compiler of its own",
    ("numpy", "folder"): "folders are written for modules, and NumPy has none",
    ("jax", "folder"): "folders are written for modules, and JAX has none",
    ("tensorflow", "folder"): "folders are written for torch's modules alone",
}
"""By framework and question: the answer is a refusal."""
