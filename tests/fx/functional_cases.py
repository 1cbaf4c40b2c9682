"""Data for the sweep over torch functions: a function and a call with a small input, one line each.

Every case is a lambda of one symbolic input that calls exactly one function, and the function that the trace must name.
"""

import torch
import torch.nn.functional as F

ONE = [
    "abs", "absolute", "acos", "acosh", "all", "amax", "amin", "aminmax", "angle", "any", "arccos", "arccosh", "arcsin",
    "arcsinh", "arctan", "arctanh", "argmax", "argmin", "argsort", "argwhere", "asin", "asinh", "atan", "atanh",
    "atleast_1d", "atleast_2d", "atleast_3d", "bernoulli", "bitwise_not", "ceil", "clone", "conj", "conj_physical",
    "corrcoef", "cos", "cosh", "count_nonzero", "cov", "deg2rad", "det", "detach", "diag", "diag_embed", "diagflat",
    "diagonal", "diff", "digamma", "empty_like", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "fix", "flatten",
    "fliplr", "flipud", "floor", "frac", "frexp", "imag", "inverse", "is_complex", "is_floating_point", "is_nonzero",
    "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal", "lgamma", "log", "log10", "log1p", "log2",
    "logdet", "logical_not", "logit", "matrix_exp", "max", "mean", "median", "min", "mode", "msort", "nan_to_num",
    "nanmean", "nanmedian", "nansum", "neg", "negative", "nonzero", "norm", "numel", "ones_like", "pinverse",
    "positive", "prod", "rad2deg", "rand_like", "randn_like", "ravel", "real", "reciprocal", "relu", "resolve_conj",
    "resolve_neg", "rot90", "round", "rsqrt", "selu", "sgn", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh",
    "slogdet", "sort", "sqrt", "square", "squeeze", "std", "std_mean", "sum", "svd", "t", "tan", "tanh", "trace",
    "tril", "triu", "trunc", "unique", "var", "var_mean", "view_as_real", "zeros_like", "nn.functional.celu",
    "nn.functional.elu", "nn.functional.gelu", "nn.functional.hardshrink", "nn.functional.hardsigmoid",
    "nn.functional.hardswish", "nn.functional.hardtanh", "nn.functional.leaky_relu", "nn.functional.logsigmoid",
    "nn.functional.mish", "nn.functional.relu", "nn.functional.relu6", "nn.functional.rrelu", "nn.functional.selu",
    "nn.functional.silu", "nn.functional.softplus", "nn.functional.softshrink", "nn.functional.softsign",
    "nn.functional.tanhshrink", "nn.functional.normalize", "nn.functional.dropout", "nn.functional.alpha_dropout",
    "nn.functional.dropout1d", "nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.one_hot",
    "nn.functional.feature_alpha_dropout", "linalg.det", "linalg.inv",
    "linalg.norm", "linalg.qr", "linalg.svd", "linalg.eigh", "linalg.cholesky", "linalg.matrix_rank", "fft.fft",
    "fft.ifft", "fft.rfft", "special.expit", "special.erf", "special.gammaln", "special.entr", "special.i0",
]  # fmt: skip

TWO = [
    "add", "allclose", "arctan2", "atan2", "bitwise_and", "bitwise_or", "bitwise_xor", "bmm", "cdist",
    "complex", "copysign", "cross", "dist", "div", "divide", "dot", "eq", "equal", "float_power", "floor_divide",
    "fmax", "fmin", "fmod", "gcd", "ge", "greater", "gt", "heaviside", "hypot", "inner", "isclose", "isin", "kron",
    "lcm", "le", "less", "logaddexp", "logaddexp2", "logical_and", "logical_or", "logical_xor", "lt", "matmul",
    "maximum", "minimum", "mm", "mul", "multiply", "mv", "ne", "nextafter", "not_equal", "outer", "polar", "pow",
    "remainder", "sub", "subtract", "tensordot", "true_divide", "vdot", "xlogy", "nn.functional.mse_loss",
    "nn.functional.l1_loss", "nn.functional.smooth_l1_loss", "nn.functional.huber_loss", "nn.functional.cross_entropy",
    "nn.functional.nll_loss", "nn.functional.kl_div", "nn.functional.binary_cross_entropy", "nn.functional.embedding",
    "nn.functional.binary_cross_entropy_with_logits", "nn.functional.cosine_similarity", "nn.functional.linear",
    "nn.functional.pairwise_distance", "nn.functional.poisson_nll_loss", "nn.functional.soft_margin_loss",
    "nn.functional.hinge_embedding_loss", "nn.functional.multilabel_margin_loss", "nn.functional.multi_margin_loss",
    "nn.functional.multilabel_soft_margin_loss", "nn.functional.conv1d", "nn.functional.conv2d", "nn.functional.conv3d",
    "nn.functional.conv_transpose2d", "nn.functional.prelu", "nn.functional.grid_sample", "linalg.solve",
    "linalg.matmul", "linalg.cross",
]  # fmt: skip

MORE = {
    torch.addcmul: lambda x: torch.addcmul(x, x, x), torch.addcdiv: lambda x: torch.addcdiv(x, x, x),
    torch.addmm: lambda x: torch.addmm(x, x, x), torch.baddbmm: lambda x: torch.baddbmm(x, x, x),
    torch.where: lambda x: torch.where(x, x, x), torch.lerp: lambda x: torch.lerp(x, x, 0.5),
    torch.clamp: lambda x: torch.clamp(x, 0, 1), torch.cat: lambda x: torch.cat([x, x]),
    torch.concat: lambda x: torch.concat([x, x]), torch.stack: lambda x: torch.stack([x, x]),
    torch.hstack: lambda x: torch.hstack([x, x]), torch.vstack: lambda x: torch.vstack((x, x)),
    torch.dstack: lambda x: torch.dstack((x, x)), torch.split: lambda x: torch.split(x, 2),
    torch.chunk: lambda x: torch.chunk(x, 2), torch.unbind: lambda x: torch.unbind(x),
    torch.gather: lambda x: torch.gather(x, 0, x), torch.scatter: lambda x: torch.scatter(x, 0, x, x),
    torch.index_select: lambda x: torch.index_select(x, 0, x), torch.masked_fill: lambda x: torch.masked_fill(x, x, 0),
    torch.masked_select: lambda x: torch.masked_select(x, x), torch.take: lambda x: torch.take(x, x),
    torch.permute: lambda x: torch.permute(x, (1, 0)), torch.transpose: lambda x: torch.transpose(x, 0, 1),
    torch.swapaxes: lambda x: torch.swapaxes(x, 0, 1), torch.movedim: lambda x: torch.movedim(x, 0, 1),
    torch.reshape: lambda x: torch.reshape(x, (-1,)), torch.unsqueeze: lambda x: torch.unsqueeze(x, 0),
    torch.flip: lambda x: torch.flip(x, (0,)),
    torch.roll: lambda x: torch.roll(x, 1),
    torch.tile: lambda x: torch.tile(x, (2,)),
    torch.repeat_interleave: lambda x: torch.repeat_interleave(x, 2), torch.narrow: lambda x: torch.narrow(x, 0, 0, 1),
    torch.select: lambda x: torch.select(x, 0, 0), torch.topk: lambda x: torch.topk(x, 1),
    torch.kthvalue: lambda x: torch.kthvalue(x, 1), torch.cumsum: lambda x: torch.cumsum(x, 0),
    torch.cumprod: lambda x: torch.cumprod(x, 0), torch.cummax: lambda x: torch.cummax(x, 0),
    torch.logsumexp: lambda x: torch.logsumexp(x, 0), torch.softmax: lambda x: torch.softmax(x, 0),
    torch.log_softmax: lambda x: torch.log_softmax(x, 0), torch.quantile: lambda x: torch.quantile(x, 0.5),
    torch.histc: lambda x: torch.histc(x, 3), torch.bincount: lambda x: torch.bincount(x),
    torch.searchsorted: lambda x: torch.searchsorted(x, x), torch.bucketize: lambda x: torch.bucketize(x, x),
    torch.renorm: lambda x: torch.renorm(x, 2, 0, 1), torch.multinomial: lambda x: torch.multinomial(x, 1),
    torch.full_like: lambda x: torch.full_like(x, 3), torch.broadcast_to: lambda x: torch.broadcast_to(x, (2, 2)),
    torch.einsum: lambda x: torch.einsum("ij->ji", x), torch.meshgrid: lambda x: torch.meshgrid(x, x, indexing="ij"),
    torch.cartesian_prod: lambda x: torch.cartesian_prod(x, x), torch.block_diag: lambda x: torch.block_diag(x, x),
    torch.broadcast_tensors: lambda x: torch.broadcast_tensors(x, x),
    torch.layer_norm: lambda x: torch.layer_norm(x, (2,)),
    F.softmax: lambda x: F.softmax(x, 0),
    F.log_softmax: lambda x: F.log_softmax(x, 0),
    F.softmin: lambda x: F.softmin(x, 0),
    F.gumbel_softmax: lambda x: F.gumbel_softmax(x),
    F.glu: lambda x: F.glu(x),
    F.threshold: lambda x: F.threshold(x, 0.1, 1),
    F.layer_norm: lambda x: F.layer_norm(x, (2,)), F.group_norm: lambda x: F.group_norm(x, 1),
    F.rms_norm: lambda x: F.rms_norm(x, (2,)), F.instance_norm: lambda x: F.instance_norm(x),
    F.batch_norm: lambda x: F.batch_norm(x, None, None, training=True),
    F.local_response_norm: lambda x: F.local_response_norm(x, 1),
    F.avg_pool1d: lambda x: F.avg_pool1d(x, 2),
    F.avg_pool2d: lambda x: F.avg_pool2d(x, 2),
    F.avg_pool3d: lambda x: F.avg_pool3d(x, 2),
    F.max_pool1d: lambda x: F.max_pool1d(x, 2),
    F.max_pool2d: lambda x: F.max_pool2d(x, 2),
    F.max_pool3d: lambda x: F.max_pool3d(x, 2),
    F.adaptive_avg_pool1d: lambda x: F.adaptive_avg_pool1d(x, 1),
    F.adaptive_avg_pool2d: lambda x: F.adaptive_avg_pool2d(x, 1),
    F.adaptive_max_pool1d: lambda x: F.adaptive_max_pool1d(x, 1),
    F.adaptive_max_pool2d: lambda x: F.adaptive_max_pool2d(x, 1),
    F.lp_pool2d: lambda x: F.lp_pool2d(x, 2, 2), F.max_unpool2d: lambda x: F.max_unpool2d(x, x, 2),
    F.interpolate: lambda x: F.interpolate(x, scale_factor=2),
    F.pad: lambda x: F.pad(x, (1, 1)), F.unfold: lambda x: F.unfold(x, 2), F.fold: lambda x: F.fold(x, (2, 2), 1),
    F.pixel_shuffle: lambda x: F.pixel_shuffle(x, 2), F.pixel_unshuffle: lambda x: F.pixel_unshuffle(x, 2),
    F.channel_shuffle: lambda x: F.channel_shuffle(x, 2), F.bilinear: lambda x: F.bilinear(x, x, x),
    F.affine_grid: lambda x: F.affine_grid(x, (1, 1, 2, 2)), F.embedding_bag: lambda x: F.embedding_bag(x, x, x),
    F.scaled_dot_product_attention: lambda x: F.scaled_dot_product_attention(x, x, x),
    F.triplet_margin_loss: lambda x: F.triplet_margin_loss(x, x, x),
    F.margin_ranking_loss: lambda x: F.margin_ranking_loss(x, x, x),
    F.cosine_embedding_loss: lambda x: F.cosine_embedding_loss(x, x, x), F.ctc_loss: lambda x: F.ctc_loss(x, x, x, x),
    F.gaussian_nll_loss: lambda x: F.gaussian_nll_loss(x, x, x), F.conv_transpose1d: lambda x: F.conv_transpose1d(x, x),
    F.multi_head_attention_forward: lambda x: F.multi_head_attention_forward(
        x, x, x, 2, 1, x, x, None, None, False, 0.0, x, x
    ),
}  # fmt: skip

METHODS = [
    "abs", "add", "all", "any", "argmax", "bool", "chunk", "clamp", "clone", "contiguous", "cos", "cpu", "cumsum",
    "detach", "dim", "div", "double", "eq", "exp", "expand", "flatten", "float", "gather", "ge", "gt", "half",
    "index_select", "int", "is_contiguous", "item", "le", "log", "long", "lt", "masked_fill", "matmul", "max", "mean",
    "min", "mm", "mul", "narrow", "ne", "neg", "new_zeros", "norm", "numel", "permute", "pow", "prod", "relu", "repeat",
    "reshape", "scatter", "select", "sigmoid", "sin", "size", "softmax", "sort", "split", "sqrt", "squeeze", "std",
    "stride", "sub", "sum", "t", "tanh", "to", "tolist", "topk", "transpose", "tril", "triu", "type", "type_as",
    "unbind", "unsqueeze", "var", "view", "view_as", "zero_", "add_", "mul_", "copy_", "fill_", "requires_grad_",
]  # fmt: skip


def resolve(name: str):
    """The function that a dotted name under torch means."""
    function = torch
    for part in name.split("."):
        function = getattr(function, part)
    return function
