"""What a framework cannot do of the shared list, as data: each with the reason, and a test that it is still so."""

from __future__ import annotations

_JAX_VALUES = "JAX traces without values, so Python cannot decide by one; jax.lax has cond and while_loop"
_JAX_ARRAYS = "arrays of JAX cannot be written to; x.at[0].set(...) makes new ones"
_ONCE = (
    "TensorFlow's tracing runs Python once, so the graph would change Python's state once; a tf.Variable keeps state"
)
_EAGER = "eager tensors of TensorFlow cannot be written to"

PROGRAMS: dict[tuple[str, str], str] = {
    ("jax", "branch_on_data"): _JAX_VALUES,
    ("jax", "loop_on_data"): _JAX_VALUES,
    ("jax", "random_numbers"): "JAX has no stream of random numbers that everybody shares; draws are functions of keys",
    ("jax", "written_items"): _JAX_ARRAYS,
    ("jax", "written_arguments"): _JAX_ARRAYS,
    ("tensorflow", "counters"): _ONCE,
    ("tensorflow", "state_of_arrays"): _ONCE,
    ("tensorflow", "histories"): _ONCE,
    ("tensorflow", "changed_arguments"): _ONCE,
    ("tensorflow", "written_items"): _EAGER,
    ("tensorflow", "written_arguments"): _EAGER,
    ("tensorflow", "prints"): "Python's print would be done once, by the trace; tf.print prints at each call",
}
"""By framework and program: the capture is refused, or the framework itself raises."""

UNSEEN: dict[tuple[str, str], str] = {
    ("numpy", "prints"): "what is printed is no result, so it is not in the graph, as in ivy (docs/from_ivy.md)",
    ("torch", "prints"): "what is printed is no result, so it is not in the graph, as in ivy (docs/from_ivy.md)",
}
"""By framework and program: captured, and the graph does not do this one thing; the documentation says so."""

QUESTIONS: dict[tuple[str, str], str] = {
    ("numpy", "compiled"): "NumPy has no compiler of its own",
    ("numpy", "folder"): "folders are written for modules, and NumPy has none",
    ("jax", "folder"): "folders are written for modules, and JAX has none",
    ("tensorflow", "folder"): "folders are written for torch's modules alone",
    ("jax", "other_sizes"): "a jaxpr holds for fixed sizes; a lazy graph captures again",
    (
        "tensorflow",
        "other_sizes",
    ): "a trace holds for the shapes of its tensors; tf.TensorSpec and lazy graphs leave them open",
}
"""By framework and question: the answer is a refusal."""
