"""Costs: which operation takes how many arithmetic operations, as one table from names to formulas.

In comes a call; out comes its ``Cost``, or None if the table does not have it: never zero for want of a formula.
Methods, functions and the operators of ATen have the names of the table, those of NumPy, JAX and TensorFlow too where
they agree; ``LAYERS`` says which operation a module is. A new operation needs one line of a table.
"""

from __future__ import annotations

from typing import Any

from clew.ir.arguments import map_arg
from clew.ir.control_flow import is_control
from clew.ir.effects import effect_of
from clew.ir.guests import Effect, package_of
from clew.ir.node import Node
from clew.ir.spellings import ARRAY_NAMES, OPERATORS
from clew.ir.types import ArrayType, ListType, TupleType, Type
from clew.tools import cost_formulas as formulas
from clew.tools.cost_formulas import Call, Cost, Formula

# ---- the table -------------------------------------------------------------------------------------------------------

POINTWISE = {
    1: """abs neg positive sub mul div pow float_power integer_pow sqrt rsqrt cbrt square reciprocal exp exp2 expm1 log
    log2 log10 log1p sin cos tan asin acos atan arcsin arccos arctan atan2 arctan2 sinh cosh tanh asinh acosh atanh erf
    erfc erfinv erf_inv lgamma digamma gammaln i0 polygamma sign sgn signbit copysign nextafter heaviside ceil floor
    round rint trunc fix frac rsub remainder fmod mod floor_divide floormod floordiv maximum minimum fmax fmin relu eq
    ne lt le gt ge isnan isinf isfinite isneginf isposinf logical_and logical_or logical_not logical_xor bitwise_and
    bitwise_or bitwise_not bitwise_xor bitwise_left_shift bitwise_right_shift shift_left shift_right_logical
    shift_right_arithmetic invert clamp_min clamp_max threshold hypot xlogy outer ger kron deg2rad rad2deg nan_to_num
    gcd lcm ldexp conj_physical angle bias_add isin""",
    2: "clamp clip prelu leaky_relu relu6 hardshrink hardtanh squared_difference isclose",
    3: "addcmul addcdiv lerp softsign softshrink tanhshrink cross logaddexp logaddexp2 hardsigmoid sinc polar",
    4: "sigmoid logistic expit hardswish elu selu celu log_sigmoid logsigmoid softplus logit rrelu",
    5: "silu swish glu",
    6: "mish",
}
"""How many operations an element of the result takes, and which operations take as many."""

FREE = """
clone contiguous copy to type float double half bfloat16 long int bool short char byte cpu cuda cast astype type_as
view_as numpy asarray array as_tensor tensor convert_to_tensor convert_element_type detach alias identity
requires_grad stop_gradient set getattr get getitem setitem item tolist size dim numel ndim len is_complex
is_floating_point cat concat concatenate stack hstack vstack dstack column_stack row_stack block append insert delete
split chunk unbind unstack tensor_split array_split hsplit vsplit dsplit view reshape flatten ravel unflatten permute
transpose matrix_transpose swapaxes swapdims moveaxis movedim t mT T adjoint squeeze unsqueeze expand_dims expand
expand_as broadcast_to broadcast_tensors broadcast_arrays broadcast_in_dim atleast_1d atleast_2d atleast_3d repeat
repeat_interleave tile roll flip fliplr flipud rot90 rev reverse pad constant_pad_nd reflection_pad1d reflection_pad2d
reflection_pad3d replication_pad1d replication_pad2d replication_pad3d zero_pad2d narrow select slice strided_slice
dynamic_slice dynamic_update_slice as_strided diag diagonal diag_embed diagflat tril triu tril_indices triu_indices
unfold im2col pixel_shuffle pixel_unshuffle channel_shuffle space_to_depth depth_to_space gather gather_nd
index_select index take take_along_dim take_along_axis embedding embedding_lookup one_hot scatter index_put index_copy
index_fill masked_scatter masked_fill masked_select boolean_mask where select_n choose put put_along_axis fill
fill_diagonal zero copy_ swap slice_scatter select_scatter diagonal_scatter compress extract meshgrid cartesian_prod
combinations empty zeros ones full arange range linspace logspace eye iota empty_like zeros_like ones_like full_like
empty_strided new_empty new_zeros new_ones new_full new_tensor scalar_tensor from_numpy frombuffer hann_window
hamming_window blackman_window kaiser_window bartlett_window rand randn randint randperm rand_like randn_like
randint_like normal uniform bernoulli multinomial exponential standard_normal random truncated_normal fold_in key seed
view_as_real view_as_complex real imag conj resolve_conj resolve_neg resize pin_memory lift_fresh lift_fresh_copy
pack_padded_sequence pad_packed_sequence pad_sequence shape nonzero argwhere tuple list dict rebuild rebuild_mapping
reshape_as choice enter exit no_grad enable_grad inference_mode set_grad_enabled is_compiling is_exporting is_tracing
is_autocast_enabled finfo iinfo setattr contains is is_not
"""
"""What moves, casts, fills in or draws elements and computes none."""

RULES: tuple[tuple[str, Formula], ...] = (
    # sums and means
    ("add", formulas.scaled_sum),
    ("sum prod max min amax amin any all argmax argmin nansum nanmax nanmin reduce_sum reduce_max", formulas.reduced),
    ("reduce_min reduce_prod reduce_any reduce_all reduce_and reduce_or", formulas.reduced),
    ("count_nonzero aminmax is_all_true", formulas.reduced),
    ("mean nanmean reduce_mean average trace", formulas.per_input(1)),
    ("var var_mean reduce_variance nanvar", formulas.per_input(4)),
    ("std std_mean reduce_std nanstd", formulas.per_input_and_result(4, roots=1)),
    ("norm vector_norm matrix_norm", formulas.per_input(2)),
    ("logsumexp reduce_logsumexp", formulas.per_input(4)),
    ("cumsum cumprod cummax cummin logcumsumexp", formulas.cumulated),
    ("diff bincount histc histogram unique_consecutive", formulas.per_input(1)),
    ("dist", formulas.per_input_and_result(3, roots=1)),
    # products
    ("matmul mm bmm mv dot vdot inner vecdot grouped_mm", formulas.matmul),
    ("addmm baddbmm addbmm addmv", formulas.sum_and_product(1)),
    ("addr", formulas.per_result(2)),
    ("linear", formulas.linear),
    ("bilinear", formulas.bilinear),
    ("tensordot", formulas.tensordot),
    ("einsum", formulas.einsum),
    ("dot_general", formulas.dot_general),
    ("convolve", formulas.convolve),
    ("conv1d conv2d conv3d conv_tbc convolution conv_transpose1d conv_transpose2d", formulas.convolution),
    ("conv_transpose3d mkldnn_convolution cudnn_convolution", formulas.convolution),
    ("tensorflow.conv1d tensorflow.conv2d tensorflow.conv3d", formulas.convolution_of_tensorflow),
    ("tensorflow.depthwise_conv2d tensorflow.convolution", formulas.convolution_of_tensorflow),
    ("conv_general_dilated conv", formulas.convolution_of_jax),
    # attention and recurrent layers
    ("scaled_dot_product_attention dot_product_attention", formulas.attention),
    ("multi_head_attention_forward", formulas.multihead_attention),
    ("multihead_attention", formulas.multihead_attention),
    ("lstm lstm_cell", formulas.recurrent(gates=4, elementwise=18)),
    ("gru gru_cell", formulas.recurrent(gates=3, elementwise=14)),
    ("rnn_tanh rnn_relu rnn_tanh_cell rnn_relu_cell", formulas.recurrent(gates=1, elementwise=1)),
    ("encoder_layer", formulas.encoder_layer),
    ("decoder_layer", formulas.decoder_layer),
    ("encoder", formulas.encoder),
    ("decoder", formulas.decoder),
    ("transformer", formulas.transformer),
    # activations and norms
    ("gelu", formulas.gelu),
    ("softmax softmin gumbel_softmax", formulas.softmax),
    ("log_softmax", formulas.log_softmax),
    ("layer_norm native_layer_norm", formulas.layer_norm),
    ("rms_norm _fused_rms_norm", formulas.rms_norm),
    ("group_norm native_group_norm", formulas.group_norm),
    ("instance_norm", formulas.instance_norm),
    ("batch_norm native_batch_norm cudnn_batch_norm", formulas.batch_norm),
    ("normalize l2_normalize", formulas.per_input_and_result(3)),
    ("cosine_similarity", formulas.cosine_similarity),
    ("local_response_norm", formulas.local_response),
    ("dropout dropout1d dropout2d dropout3d alpha_dropout feature_dropout native_dropout", formulas.dropout),
    # pools, images
    ("max_pool1d max_pool2d max_pool3d max_pool2d_with_indices max_pool", formulas.max_pool),
    ("avg_pool1d avg_pool2d avg_pool3d avg_pool", formulas.avg_pool),
    ("adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d", formulas.adaptive_avg_pool),
    ("adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d", formulas.adaptive_max_pool),
    ("interpolate upsample upsample_nearest2d upsample_bilinear2d upsample_bicubic2d", formulas.interpolate),
    ("grid_sample", formulas.grid_sample),
    ("affine_grid", formulas.affine_grid),
    ("fold", formulas.fold),
    # losses
    ("mse_loss l1_loss", formulas.loss(2)),
    ("smooth_l1_loss huber_loss", formulas.loss(5)),
    ("binary_cross_entropy binary_cross_entropy_with_logits", formulas.loss(7)),
    ("kl_div", formulas.loss(3)),
    ("nll_loss", formulas.likelihood_loss),
    ("cross_entropy", formulas.cross_entropy),
    ("ctc_loss", formulas.ctc),
    # Fourier transforms
    ("fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft", formulas.fourier),
    ("stft istft", formulas.short_fourier),
    ("fftshift ifftshift fftfreq rfftfreq", formulas.free),
    # order and places
    ("sort argsort msort median nanmedian kthvalue unique quantile nanquantile", formulas.sorting),
    ("topk top_k", formulas.largest_ones),
    ("searchsorted bucketize", formulas.searched),
    ("cdist pdist", formulas.distances),
    ("pairwise_distance", formulas.per_input(3)),
    ("index_add scatter_add index_reduce", formulas.sources(3, "source", "src")),
    ("scatter_reduce", formulas.sources(3, "src")),
    ("segment_sum", formulas.per_input(1)),
    ("embedding_bag", formulas.embedding_bag),
    ("_weight_norm", formulas.per_input(3)),
    # matrices, as textbooks count them
    ("cholesky cholesky_ex", formulas.matrix(1 / 3)),
    ("det slogdet logdet lu lu_factor", formulas.matrix(2 / 3)),
    ("inv inverse cholesky_inverse", formulas.matrix(2)),
    ("qr", formulas.matrix(4 / 3)),
    ("eigvalsh", formulas.matrix(4 / 3)),
    ("eigh", formulas.matrix(9)),
    ("eigvals", formulas.matrix(10)),
    ("eig", formulas.matrix(25)),
    ("svd svdvals", formulas.singular_values),
    ("solve triangular_solve solve_triangular cholesky_solve", formulas.solve),
)
"""Operations whose number depends on more than the size of the result."""

TABLE: dict[str, Formula] = {
    **dict.fromkeys(FREE.split(), formulas.free),
    **{name: formulas.per_result(operations) for operations, names in POINTWISE.items() for name in names.split()},
    **{name: formula for names, formula in RULES for name in names.split()},
}
"""What each operation takes, by its name; ``framework.name`` where a framework means something else by it."""

OTHER_NAMES = {
    "special_expit": "sigmoid", "truediv": "div", "divide": "div", "true_divide": "div", "multiply": "mul",
    "subtract": "sub", "power": "pow", "negative": "neg", "absolute": "abs", "AddV2": "add", "RealDiv": "div",
    "MatMul": "matmul", "BatchMatMulV2": "matmul", "BiasAdd": "bias_add",
    "Rsqrt": "rsqrt", "greater": "gt", "less": "lt",
    "greater_equal": "ge", "less_equal": "le", "equal": "eq", "not_equal": "ne", "safe_softmax": "softmax",
    "scaled_dot_product_flash_attention_for_cpu": "scaled_dot_product_attention",
    "_scaled_dot_product_flash_attention_for_cpu": "scaled_dot_product_attention",
    "_scaled_dot_product_flash_attention": "scaled_dot_product_attention",
    "_scaled_dot_product_efficient_attention": "scaled_dot_product_attention",
    "_scaled_dot_product_attention_math_for_mps": "scaled_dot_product_attention",
    "_scaled_dot_product_cudnn_attention": "scaled_dot_product_attention",
    "_scaled_dot_product_fused_attention_overrideable": "scaled_dot_product_attention",
    "_native_batch_norm_legit": "native_batch_norm", "_native_batch_norm_legit_no_training": "native_batch_norm",
    "_adaptive_avg_pool2d": "adaptive_avg_pool2d", "_adaptive_avg_pool3d": "adaptive_avg_pool3d",
    "linalg_vector_norm": "vector_norm", "linalg_norm": "norm", "linalg_inv": "inv", "linalg_det": "det",
    "linalg_cholesky_ex": "cholesky", "linalg_solve": "solve",
    "linalg_qr": "qr", "linalg_eigvalsh": "eigvalsh", "linalg_eigh": "eigh", "linalg_eigvals": "eigvals",
    "linalg_eig": "eig", "linalg_svdvals": "svdvals", "linalg_svd": "svd",
    "_linalg_svd": "svd", "_linalg_eigh": "eigh", "_linalg_eigvals": "eigvals",
    "linalg_solve_triangular": "solve_triangular", "_to_copy": "to", "_unsafe_view": "view",
    "embedding_bag": "embedding_bag", "_cdist_forward": "cdist", "mkldnn_linear": "linear",
    "upsample_nearest1d": "upsample_nearest2d", "_fft_r2c": "rfft", "_fft_c2r": "irfft", "_fft_c2c": "fft",
}  # fmt: skip
"""Names of ATen and of other frameworks for operations of the table."""

_AFFINE = "weight bias"
LAYERS = {
    "Linear": f"linear {_AFFINE}",
    "NonDynamicallyQuantizableLinear": f"linear {_AFFINE}",
    "Bilinear": f"bilinear {_AFFINE}",
    "Identity": "identity",
    **{f"Conv{dims}d": f"conv{dims}d {_AFFINE}" for dims in (1, 2, 3)},
    **{f"ConvTranspose{dims}d": f"conv_transpose{dims}d {_AFFINE}" for dims in (1, 2, 3)},
    **{f"BatchNorm{dims}d": f"batch_norm running_mean {_AFFINE} training" for dims in (1, 2, 3)},
    "SyncBatchNorm": f"batch_norm running_mean {_AFFINE} training",
    **{f"InstanceNorm{dims}d": f"instance_norm {_AFFINE}" for dims in (1, 2, 3)},
    "LayerNorm": f"layer_norm normalized_shape {_AFFINE}",
    "RMSNorm": "rms_norm normalized_shape weight",
    "GroupNorm": f"group_norm num_groups {_AFFINE}",
    "LocalResponseNorm": "local_response_norm size",
    **{f"MaxPool{dims}d": f"max_pool{dims}d kernel_size" for dims in (1, 2, 3)},
    **{f"AvgPool{dims}d": f"avg_pool{dims}d kernel_size" for dims in (1, 2, 3)},
    **{f"AdaptiveAvgPool{dims}d": f"adaptive_avg_pool{dims}d" for dims in (1, 2, 3)},
    **{f"AdaptiveMaxPool{dims}d": f"adaptive_max_pool{dims}d" for dims in (1, 2, 3)},
    **dict.fromkeys("Dropout Dropout1d Dropout2d Dropout3d AlphaDropout".split(), "dropout training"),
    "Embedding": "embedding",
    "EmbeddingBag": "embedding_bag weight",
    "MultiheadAttention": "multihead_attention num_heads batch_first",
    "LSTM": "lstm module", "GRU": "gru module", "RNN": "rnn_tanh module",
    "LSTMCell": "lstm module", "GRUCell": "gru module", "RNNCell": "rnn_tanh module",
    "TransformerEncoderLayer": "encoder_layer module",
    "TransformerDecoderLayer": "decoder_layer module",
    "TransformerEncoder": "encoder module",
    "TransformerDecoder": "decoder module",
    "Transformer": "transformer module",
    "ReLU": "relu", "ReLU6": "relu6", "LeakyReLU": "leaky_relu",
    "PReLU": "prelu", "RReLU": "rrelu", "ELU": "elu", "SELU": "selu",
    "CELU": "celu", "GELU": "gelu approximate", "SiLU": "silu", "Mish": "mish", "Sigmoid": "sigmoid", "Tanh": "tanh",
    "Softplus": "softplus", "Softsign": "softsign", "Softshrink": "softshrink", "Tanhshrink": "tanhshrink",
    "Hardshrink": "hardshrink", "Hardtanh": "hardtanh", "Hardsigmoid": "hardsigmoid", "Hardswish": "hardswish",
    "LogSigmoid": "log_sigmoid", "GLU": "glu", "Threshold": "threshold", "Softmax": "softmax dim",
    "LogSoftmax": "log_softmax dim", "Softmax2d": "softmax", "Softmin": "softmin dim",
    "Flatten": "flatten", "Unflatten": "unflatten",
    "PixelShuffle": "pixel_shuffle", "PixelUnshuffle": "pixel_unshuffle",
    "ChannelShuffle": "channel_shuffle", "Unfold": "im2col", "Fold": "fold", "Upsample": "interpolate mode",
    "UpsamplingNearest2d": "interpolate mode", "UpsamplingBilinear2d": "interpolate mode",
    **{f"{kind}Pad{dims}d": "pad" for kind in ("Zero", "Constant", "Circular") for dims in (1, 2, 3)},
    **{f"{kind}Pad{dims}d": "pad" for kind in ("Reflection", "Replication") for dims in (1, 2, 3)},
    "CosineSimilarity": "cosine_similarity", "PairwiseDistance": "pairwise_distance",
    "MSELoss": "mse_loss reduction", "L1Loss": "l1_loss reduction", "SmoothL1Loss": "smooth_l1_loss reduction",
    "CrossEntropyLoss": "cross_entropy", "NLLLoss": "nll_loss", "BCELoss": "binary_cross_entropy reduction",
    "BCEWithLogitsLoss": "binary_cross_entropy_with_logits reduction",
}  # fmt: skip
"""Which operation a module of torch is, and which of its attributes are arguments of it."""


# ---- looking up ------------------------------------------------------------------------------------------------------


def cost_of(call: Call) -> Cost | None:
    """What a call takes; None if no formula is known."""
    for name in (f"{call.framework}.{call.name}", call.name):
        formula = TABLE.get(name)
        if formula is not None:
            return formula(call)
    return None


def operation_name(name: str, framework: str = "torch") -> str:
    """The name that the table has for a function, a method or an operator of ATen."""
    name = name.partition(".")[0]
    if name.startswith("__") and name.endswith("__"):
        core = name.strip("_")
        spelled = (core, f"{core}_", core.removeprefix("r"))
        name = next((OPERATORS[one] for one in spelled if one in OPERATORS), core)
    if framework != "torch":
        name = ARRAY_NAMES.get(name, name)
    if name in TABLE or f"{framework}.{name}" in TABLE:
        return name
    for other in (name.rstrip("_"), OTHER_NAMES.get(name.rstrip("_"), ""), name.strip("_"), name.lower()):
        if other in TABLE or f"{framework}.{other}" in TABLE:
            return other
    return name


def operation_of(node: Node, module: Any, framework: str) -> tuple[str, dict[str, Any]]:
    """The name that the table has for what a node does, and which arguments a module that it calls holds."""
    if node.op == "call_module":
        kind = type(module)
        name, *fields = LAYERS.get(kind.__name__, "").split() if package_of(kind) == "torch" else [""]
        if not name:
            return kind.__name__, {}
        return name, {field: module if field == "module" else getattr(module, field) for field in fields}
    target = node.target
    if getattr(target, "__module__", "") == "_operator":
        return operation_name(f"__{target.__name__.strip('_')}__"), {}
    name = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
    return operation_name(name, framework), {}


def cost_by_types(node: Node, module: Any, framework: str) -> Cost | None:
    """What a node takes by the types of its arguments and its result; None where those, or a formula, are not known.

    ``module`` is the one that the node calls, ``framework`` the one of the program.
    """
    if node.op not in ("call_function", "call_method", "call_module") or is_control(node):
        return None
    name, settings = operation_of(node, module, framework)
    try:
        args, kwargs = map_arg((tuple(node.args), dict(node.kwargs)), _sized)
        result = _parts(node.value_type)
        if node.value_type is None and effect_of(node) is Effect.WRITE:
            result = args[0]  # what it was written to
        return None if result is None else cost_of(Call(framework, name, args, kwargs, result, settings))
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, StopIteration):
        return None  # a size is not known, or an argument that is no array


def _sized(node: Node) -> Any:
    return _parts(node.value_type)


def _parts(value_type: Type | None) -> Any:
    """The type of an array as what has its sizes, and a nest of such types as a nest."""
    if isinstance(value_type, (TupleType, ListType)):
        return tuple(map(_parts, value_type.items))
    return value_type if isinstance(value_type, ArrayType) else None
