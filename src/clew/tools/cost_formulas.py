"""Formulas for the number of arithmetic operations that a call takes.

In comes a ``Call``: the name of an operation, its arguments and its result, of which only sizes are looked at, so that
types of arrays do as well as arrays. Out
comes its ``Cost``: multiply-adds of products, convolutions and attention as ``macs``, all else as ``others``. One is
what computes an element from one or two others (``exp``, ``sqrt`` and comparisons too); what is composed of such
operations takes as many as its formula has. Moving, casting and drawing random numbers takes none. Which operation has
which formula stands in the table of ``costs``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from clew import tree
from clew.ir.guests import guest_of
from clew.ir.types import ArrayType


@dataclass(frozen=True)
class Cost:
    """Multiply-adds, and other arithmetic operations."""

    macs: int = 0
    others: int = 0

    @property
    def flops(self) -> int:
        """All arithmetic operations; a multiply-add is two."""
        return 2 * self.macs + self.others

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.macs + other.macs, self.others + other.others)


@dataclass(frozen=True)
class Call:
    """One call of an operation: what it was given and what it gave."""

    framework: str
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any
    settings: dict[str, Any] = field(default_factory=dict)
    """What a module holds of the operation's arguments."""

    def at(self, place: int, *names: str, default: Any = None) -> Any:
        """The argument at a place, or under one of these names."""
        for given in (self.kwargs, self.settings):
            for name in names:
                if name in given:
                    return given[name]
        return self.args[place] if place < len(self.args) else default

    @property
    def first(self) -> Any:
        """The first argument, which most operations are about."""
        return self.at(0, "input", "self", "a", "x", "query")

    @property
    def out(self) -> int:
        """How many elements the result has; of several results the first counts."""
        found = list(arrays_in(self.result))
        return count(found[0]) if found else 0


Formula = Callable[[Call], Cost]


# ---- sizes -----------------------------------------------------------------------------------------------------------


def arrays_in(value: Any) -> Iterator[Any]:
    """The arrays inside a nest."""
    if is_array(value):
        yield value
    elif isinstance(value, (tuple, list, dict)) or hasattr(value, "__dataclass_fields__"):
        yield from (leaf for leaf in tree.flatten(value)[0] if is_array(leaf))


def is_array(value: Any) -> bool:
    """Whether a value is an array of one of the frameworks, or the type of one."""
    if isinstance(value, ArrayType):
        return True
    if isinstance(value, (int, float, str, bool, type(None), tuple, list, dict)):
        return False
    guest = guest_of(value)
    return guest is not None and guest.memory_of(value) is not None


def shape(value: Any) -> tuple[int, ...]:
    """The sizes of an array, or of the arrays of a type; none for numbers."""
    return tuple(int(size) for size in getattr(value, "shape", ()))


def count(value: Any) -> int:
    """How many elements an array has."""
    return math.prod(shape(value))


def _window(call: Call) -> int:
    """How many elements a pool looks at for each of its results."""
    size = call.at(1, "kernel_size", "ksize")
    dims = len(shape(call.first)) - 2 if "1d" not in call.name else 1
    dims = next((number for number in (1, 2, 3) if f"{number}d" in call.name), dims)
    return math.prod(size) if isinstance(size, (tuple, list)) else int(size) ** dims


def _windows(call: Call) -> int:
    """How many elements an adaptive pool looks at in all: its windows overlap where sizes do not divide."""
    before, after = shape(call.first), shape(next(arrays_in(call.result)))
    looked = 1
    for size, wanted in zip(before, after, strict=True):
        looked *= sum(-(-(place + 1) * size // wanted) - place * size // wanted for place in range(wanted))
    return looked


def _rows(call: Call, *names: str, default: int = -1) -> int:
    """How many slices along a dimension the first argument has."""
    sizes = shape(call.first)
    axis = call.at(1, *(names or ("dim", "axis")), default=default)
    if not sizes or axis is None:
        return 1
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    return count(call.first) // max(1, math.prod(sizes[one] for one in axes))


def _levels(number: int) -> int:
    return max(1, math.ceil(math.log2(max(2, number))))


# ---- formulas --------------------------------------------------------------------------------------------------------


def free(call: Call) -> Cost:
    """Nothing is computed: elements are moved, cast, filled in, drawn or looked up."""
    return Cost()


def per_result(operations: int) -> Formula:
    """So many operations for each element of the result."""
    return lambda call: Cost(others=operations * call.out)


def per_input(operations: int) -> Formula:
    """So many operations for each element of the first argument."""
    return lambda call: Cost(others=operations * count(call.first))


def gelu(call: Call) -> Cost:
    """``x / sqrt(2)``, erf, add 1, times x, times 0.5; the approximation has a cube and a tanh."""
    return Cost(others=(8 if call.at(1, "approximate") in ("tanh", True) else 5) * call.out)


def scaled_sum(call: Call) -> Cost:
    """``input + alpha * other``."""
    return Cost(others=call.out * (1 if call.kwargs.get("alpha", 1) == 1 else 2))


def reduced(call: Call) -> Cost:
    """A sum of k elements takes k - 1 additions; so do products, maxima and the like."""
    if is_array(call.at(1, "other", "x2")):
        return Cost(others=call.out)
    return Cost(others=count(call.first) - call.out)


def per_input_and_result(times: int, roots: int = 0) -> Formula:
    """So many operations for each element, and some for each result."""
    return lambda call: Cost(others=times * count(call.first) + roots * call.out)


def softmax(call: Call) -> Cost:
    """max, subtract, exp, sum, divide."""
    return Cost(others=5 * count(call.first) - 2 * _rows(call))


def log_softmax(call: Call) -> Cost:
    """max, subtract, exp, sum, log, subtract."""
    return Cost(others=5 * count(call.first) - _rows(call))


def cumulated(call: Call) -> Cost:
    return Cost(others=count(call.first) - _rows(call))


def _normalised(elements: int, rows: int, affine: int) -> Cost:
    """mean, subtract, square, mean; add and rsqrt for each row; multiply; then weight and bias."""
    return Cost(others=(5 + affine) * elements + 2 * rows)


def _affine(call: Call, weight: int, bias: int) -> int:
    return sum(call.at(*place) is not None for place in ((weight, "weight"), (bias, "bias")))


def layer_norm(call: Call) -> Cost:
    elements = count(call.first)
    normalized = call.at(1, "normalized_shape")
    normalized = normalized if isinstance(normalized, (tuple, list)) else tuple(normalized)
    return _normalised(elements, elements // math.prod(normalized), _affine(call, 2, 3))


def rms_norm(call: Call) -> Cost:
    """square, mean; add and rsqrt for each row; multiply; then the weight."""
    elements = count(call.first)
    rows = elements // math.prod(call.at(1, "normalized_shape"))
    return Cost(others=(3 + (call.at(2, "weight") is not None)) * elements + 2 * rows)


def group_norm(call: Call) -> Cost:
    groups = call.at(1, "num_groups", "group")
    return _normalised(count(call.first), shape(call.first)[0] * int(groups), _affine(call, 2, 3))


def instance_norm(call: Call) -> Cost:
    batch, channels = shape(call.first)[:2]
    return _normalised(count(call.first), batch * channels, _affine(call, 3, 4))


def batch_norm(call: Call) -> Cost:
    """With statistics of the batch as any norm, and their running means; else subtract, multiply, weight and bias."""
    elements = count(call.first)
    channels = shape(call.first)[1]
    affine = _affine(call, 3, 4) if call.name == "batch_norm" else _affine(call, 1, 2)
    held = call.at(1, "running_mean")
    if call.at(5, "training", default=False) or held is None:
        return _normalised(elements, channels, affine) + Cost(others=0 if held is None else 6 * channels)
    return Cost(others=(2 + affine) * elements + 2 * channels)


def matmul(call: Call) -> Cost:
    sizes = shape(call.first)
    is_turned = call.kwargs.get("transpose_a") or call.kwargs.get("adjoint_a")
    return Cost(macs=call.out * sizes[-2 if is_turned else -1]) if sizes else Cost(others=call.out)


def sum_and_product(first: int) -> Formula:
    """``input + a @ b``, of which ``a`` stands at a place."""

    def formula(call: Call) -> Cost:
        left = call.at(first, "mat1", "batch1", "mat")
        batch = shape(left)[0] if call.name == "addbmm" else 1
        return Cost(macs=call.out * shape(left)[-1] * batch, others=call.out)

    return formula


def linear(call: Call) -> Cost:
    inner = shape(call.at(1, "weight"))[-1]
    return Cost(macs=call.out * inner, others=call.out if call.at(2, "bias") is not None else 0)


def bilinear(call: Call) -> Cost:
    _, left, right = shape(call.at(2, "weight"))
    return Cost(macs=call.out * left * (right + 1), others=call.out if call.at(3, "bias") is not None else 0)


def convolution(call: Call) -> Cost:
    """Each result takes a multiply-add for each weight of its channel; transposed, each input does."""
    weights = math.prod(shape(call.at(1, "weight"))[1:])
    is_transposed = "transpose" in call.name or (call.name == "convolution" and call.at(6, "transposed"))
    bias = call.out if call.at(2, "bias") is not None else 0
    return Cost(macs=(count(call.first) if is_transposed else call.out) * weights, others=bias)


def convolution_of_tensorflow(call: Call) -> Cost:
    filters = shape(call.at(1, "filters", "filter"))
    weights = math.prod(filters[:2]) if "depthwise" in call.name else math.prod(filters[:-1])
    return Cost(macs=call.out * weights)


def convolution_of_jax(call: Call) -> Cost:
    weights = shape(call.at(1, "rhs", "v"))
    numbers = call.at(6, "dimension_numbers")
    spec = getattr(numbers, "rhs_spec", None)
    if spec is None and isinstance(numbers, (tuple, list)):
        spec = (str(numbers[1]).index("O"),)
    return Cost(macs=call.out * math.prod(weights) // weights[0 if spec is None else spec[0]])


def dot_general(call: Call) -> Cost:
    (contracted, _), _ = call.at(2, "dimension_numbers")
    return Cost(macs=call.out * math.prod(shape(call.first)[axis] for axis in contracted))


def tensordot(call: Call) -> Cost:
    product = count(call.first) * count(call.at(1, "b", "other"))
    return Cost(macs=call.out * math.isqrt(product // max(1, call.out)))


def einsum(call: Call) -> Cost:
    """Operands are joined from left to right; a step with a letter that nobody needs any more is a product."""
    equation, *operands = call.args
    operands = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], (tuple, list)) else operands
    inputs, _, wanted = str(equation).replace(" ", "").partition("->")
    terms = inputs.split(",")
    sizes: dict[str, int] = {}
    named = [_letters(term, shape(operand), sizes) for term, operand in zip(terms, operands, strict=True)]
    letters = "".join(term.replace("...", "") for term in terms)
    kept = set(wanted) if "->" in str(equation) else {one for one in letters if letters.count(one) == 1}
    kept |= {one for one in sizes if len(one) > 1}
    done, total = named[0], Cost()
    for place, following in enumerate(named[1:], 2):
        joined = done | following
        later = kept.union(*named[place:])
        work = math.prod(sizes[one] for one in joined)
        total += Cost(others=work) if joined <= later else Cost(macs=work)
        done = joined & later
    return total if len(named) > 1 else Cost(others=math.prod(sizes.values()) - call.out)


def _letters(term: str, sizes: tuple[int, ...], known: dict[str, int]) -> set[str]:
    """The letters of an operand, whose sizes become known; what ``...`` stands for is numbered from the right."""
    before, dots, after = term.partition("...")
    middle = len(sizes) - len(before) - len(after)
    names = [*before, *(f"...{place}" for place in range(middle if dots else 0, 0, -1)), *after]
    for name, size in zip(names, sizes, strict=True):
        known[name] = max(size, known.get(name, 1))
    return set(names)


def _scores(queries: int, keys: int, mask: bool) -> Cost:
    """The softmax of scores: scaled, masked, max, subtract, exp, sum, divide."""
    return Cost(others=(6 + mask) * queries * keys - 2 * queries)


def attention(call: Call) -> Cost:
    """Products with keys and values, in full also where later words are masked; and the softmax between."""
    query, key, value = (shape(call.at(place, name)) for place, name in enumerate(("query", "key", "value")))
    queries, keys = math.prod(query[:-1]), key[-2]
    masked = is_array(call.at(3, "attn_mask", "attn_bias")) or call.at(5, "is_causal", default=False) is True
    return Cost(macs=queries * keys * (query[-1] + value[-1])) + _scores(queries, keys, masked)


def multihead_attention(call: Call) -> Cost:
    query, key, value = (call.at(place, name) for place, name in enumerate(("query", "key", "value")))
    width, heads = shape(query)[-1], int(call.at(4, "num_heads"))
    first = 0 if call.settings.get("batch_first") and len(shape(query)) == 3 else -2
    batch = count(query) // width // shape(query)[-2 if first == 0 else 0]
    keys = count(key) // shape(key)[-1] // batch
    rows = count(query) // width
    projections = rows * width * 2 + count(key) + count(value)
    scores = _scores(rows * heads, keys, is_array(call.kwargs.get("attn_mask")))
    biases = (2 * rows + 2 * batch * keys) * width
    return Cost(macs=projections * width + 2 * rows * keys * width, others=biases) + scores


def recurrent(gates: int, elementwise: int) -> Formula:
    """Layers of cells: in each step products with all weights, biases, and what joins the gates."""

    def formula(call: Call) -> Cost:
        module = call.settings.get("module")
        weights = list(arrays_in(call.args[2:])) if module is None else list(module.parameters())
        weights = [weight for weight in weights if len(shape(weight)) < 3]
        rows, width = shape(weights[0])
        steps = count(arrays_of_sequence(call.first)) // width
        cells = sum(shape(weight)[0] == rows for weight in weights if len(shape(weight)) == 2) // 2
        macs = sum(count(weight) for weight in weights if len(shape(weight)) == 2)
        biases = sum(count(weight) for weight in weights if len(shape(weight)) == 1)
        return Cost(macs=steps * macs, others=steps * (biases + cells * (rows + elementwise * rows // gates)))

    return formula


def arrays_of_sequence(value: Any) -> Any:
    """The array of a packed sequence; any other value as it is."""
    return value[0] if isinstance(value, tuple) and value and is_array(value[0]) else value


def max_pool(call: Call) -> Cost:
    return Cost(others=call.out * (_window(call) - 1))


def avg_pool(call: Call) -> Cost:
    return Cost(others=call.out * _window(call))


def adaptive_avg_pool(call: Call) -> Cost:
    return Cost(others=_windows(call))


def adaptive_max_pool(call: Call) -> Cost:
    return Cost(others=_windows(call) - call.out)


_WEIGHTS_OF_NEIGHBOURS = {"linear": 3, "bilinear": 7, "trilinear": 15, "bicubic": 31}


def interpolate(call: Call) -> Cost:
    """A weighted sum of the neighbours of each element."""
    mode = call.at(3, "mode", default="nearest")
    mode = next((known for known in ("bicubic", "bilinear", "trilinear") if known in call.name), mode)
    return adaptive_avg_pool(call) if mode == "area" else Cost(others=_WEIGHTS_OF_NEIGHBOURS.get(mode, 0) * call.out)


def grid_sample(call: Call) -> Cost:
    """Places from coordinates, weights from places, and a weighted sum of the neighbours."""
    grid = shape(call.at(1, "grid"))
    dims = grid[-1]
    places = math.prod(grid[:-1])
    return Cost(others=places * 7 * dims + call.out * (2 ** (dims + 1) - 1))


def loss(each: int) -> Formula:
    """So many operations for each element, then a sum or mean of them."""

    def formula(call: Call) -> Cost:
        elements = count(call.first)
        reduction = {"none": 0, "sum": elements - 1}.get(call.kwargs.get("reduction", "mean"), elements)
        return Cost(others=each * elements + reduction)

    return formula


def likelihood_loss(call: Call) -> Cost:
    """The mean of one element of each row, negated."""
    sizes = shape(call.first)
    return Cost(others=2 * (count(call.first) // sizes[min(1, len(sizes) - 1)]))


def cross_entropy(call: Call) -> Cost:
    """A softmax in logarithms, then the mean of one element of each row."""
    elements = count(call.first)
    rows = elements // shape(call.first)[1 if len(shape(call.first)) > 1 else 0]
    return Cost(others=5 * elements - rows + 2 * rows)


def ctc(call: Call) -> Cost:
    steps, batch = shape(call.first)[:2]
    return Cost(others=7 * steps * batch * (2 * shape(call.at(1, "targets"))[-1] + 1))


def fourier(call: Call) -> Cost:
    """5 n log2 n for complex numbers, half of it where one side is real."""
    sizes = max(count(call.first), call.out)
    axes = call.at(2, "dim", "axis", "axes", default=(-2, -1) if call.name.endswith("2") else -1)
    if call.name.endswith("n") and not isinstance(axes, (tuple, list)):
        axes = tuple(range(len(shape(call.first))))
    wide = shape(call.first) if count(call.first) >= call.out else shape(next(arrays_in(call.result)))
    length = math.prod(wide[axis] for axis in (axes if isinstance(axes, (tuple, list)) else (axes,)))
    each = 5 * _levels(length)
    return Cost(others=sizes * each // (2 if "rfft" in call.name or "hfft" in call.name else 1))


def short_fourier(call: Call) -> Cost:
    """A window, then a Fourier transform of real numbers, for each frame."""
    length = int(call.at(1, "n_fft"))
    frames = call.out // (length // 2 + 1) if call.name == "stft" else count(call.first) // (length // 2 + 1)
    return Cost(others=frames * length * (1 + 5 * _levels(length) // 2))


def sorting(call: Call) -> Cost:
    """n log2 n comparisons along a dimension."""
    elements = count(call.first)
    return Cost(others=elements * _levels(elements // max(1, _rows(call))))


def largest_ones(call: Call) -> Cost:
    return Cost(others=count(call.first) * _levels(int(call.at(1, "k"))))


def searched(call: Call) -> Cost:
    """log2 n comparisons for each element looked for."""
    bounds = call.first if call.name == "searchsorted" else call.at(1, "boundaries")
    return Cost(others=call.out * _levels(shape(bounds)[-1]))


def distances(call: Call) -> Cost:
    """Differences, squares, sums and a root for each pair."""
    return Cost(others=3 * call.out * shape(call.first)[-1])


def sources(place: int, *names: str) -> Formula:
    """One operation for each element that is added to others."""
    return lambda call: Cost(others=count(call.at(place, *names)))


def fold(call: Call) -> Cost:
    """Overlapping elements are added."""
    return Cost(others=max(0, count(call.first) - call.out))


def affine_grid(call: Call) -> Cost:
    """Each place is multiplied by a matrix."""
    return Cost(macs=call.out * shape(call.first)[-1])


def embedding_bag(call: Call) -> Cost:
    """The rows of each bag are added; which of the first two arguments is the table has changed with the versions."""
    tables = [call.at(1, "weight"), call.first]
    table, rows = tables if "weight" in call.settings or "float" in str(tables[0].dtype) else tables[::-1]
    return Cost(others=max(0, count(rows) * shape(table)[-1] - call.out))


def matrix(cubes: float) -> Formula:
    """So many times n**3 for each square matrix, as the textbooks count them."""

    def formula(call: Call) -> Cost:
        *batch, rows, columns = shape(call.first)
        return Cost(others=int(math.prod(batch) * cubes * rows * columns * min(rows, columns)))

    return formula


def singular_values(call: Call) -> Cost:
    """Of m rows and n <= m columns: ``4mn**2 - 4n**3/3``; with vectors ``14mn**2 + 8n**3``, with all of them
    ``4m**2n + 8mn**2 + 9n**3``."""
    *batch, rows, columns = shape(call.first)
    m, n = max(rows, columns), min(rows, columns)
    vectors, *others = arrays_in(call.result)
    has_vectors, is_whole = bool(others) and count(vectors) > 0, shape(vectors)[-1:] == (rows,) and rows > columns
    if not has_vectors:
        return Cost(others=math.prod(batch) * (4 * m * n**2 - 4 * n**3 // 3))
    whole, thin = 4 * m**2 * n + 8 * m * n**2 + 9 * n**3, 14 * m * n**2 + 8 * n**3
    return Cost(others=math.prod(batch) * (whole if is_whole else thin))


def solve(call: Call) -> Cost:
    """A decomposition of n**3 * 2/3, then n**2 * 2 for each right side."""
    *batch, rows, _ = shape(call.first)
    is_triangular = "triangular" in call.name
    right = call.out * rows * (1 if is_triangular else 2)
    return Cost(others=right + (0 if is_triangular else 2 * math.prod(batch) * rows**3 // 3))


def cosine_similarity(call: Call) -> Cost:
    """Three inner products, then two roots, two maxima, a product and a quotient."""
    elements = max(count(call.first), count(call.at(1, "x2")))
    return Cost(others=6 * elements + 3 * call.out)


def local_response(call: Call) -> Cost:
    return Cost(others=call.out * (int(call.at(1, "size")) + 5))


def convolve(call: Call) -> Cost:
    return Cost(macs=count(call.first) * count(call.at(1, "v")))


def dropout(call: Call) -> Cost:
    is_on = call.at(2, "training", "train", default=True)
    return Cost(others=2 * call.out if is_on else 0)


def encoder_layer(call: Call) -> Cost:
    """Attention of a sequence to itself, two layers with an activation between, two norms, two sums."""
    return _transformer_layer(call.settings["module"], call.first, None)


def decoder_layer(call: Call) -> Cost:
    return _transformer_layer(call.settings["module"], call.first, call.at(1, "memory"))


def encoder(call: Call) -> Cost:
    layers = (_transformer_layer(layer, call.first, None) for layer in call.settings["module"].layers)
    return sum(layers, Cost()) + _final_norm(call.settings["module"].norm, call.first)


def decoder(call: Call) -> Cost:
    memory = call.at(1, "memory")
    layers = (_transformer_layer(layer, call.first, memory) for layer in call.settings["module"].layers)
    return sum(layers, Cost()) + _final_norm(call.settings["module"].norm, call.first)


def transformer(call: Call) -> Cost:
    source, target = call.at(0, "src"), call.at(1, "tgt")
    model = call.settings["module"]
    reading = Call("torch", "encoder", (source,), {}, source, {"module": model.encoder})
    writing = Call("torch", "decoder", (target, source), {}, target, {"module": model.decoder})
    return encoder(reading) + decoder(writing)


def _final_norm(norm: Any, values: Any) -> Cost:
    return Cost() if norm is None else _normalised(count(values), count(values) // shape(values)[-1], 2)


def _transformer_layer(layer: Any, values: Any, encoded: Any) -> Cost:
    elements, width = count(values), shape(values)[-1]
    rows = elements // width
    inner = layer.linear1.weight.shape[0]
    settings = {"num_heads": layer.self_attn.num_heads, "batch_first": layer.self_attn.batch_first}
    total = multihead_attention(Call("torch", "", (values, values, values), {}, values, settings))
    if encoded is not None:
        total += multihead_attention(Call("torch", "", (values, encoded, encoded), {}, values, settings))
    parts = 2 if encoded is None else 3
    activation = getattr(layer.activation, "__name__", "relu")
    each = 5 if activation == "gelu" else 1
    total += Cost(macs=2 * rows * width * inner, others=rows * (inner * (1 + each) + width))
    norms = _normalised(elements, rows, 2)
    return total + Cost(others=parts * (elements + norms.others))
