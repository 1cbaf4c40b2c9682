"""How the walk calls each public function of tf.math, tf.nn, tf.linalg and tf.signal, and its gaps."""

from __future__ import annotations

CALLS: dict[str, str] = {
    "definite": "linalg.cholesky",
    "x": (
        "math.abs math.acos math.acosh math.angle math.argmax math.argmin math.asin math.asinh math.atan "
        "math.atanh math.bessel_i0 math.bessel_i0e math.bessel_i1 math.bessel_i1e math.bincount math.ceil "
        "math.conj math.cos math.cosh math.count_nonzero math.cumprod math.cumsum math.cumulative_logsumexp "
        "math.digamma math.erf math.erfc math.erfcinv math.erfinv math.exp math.expm1 math.floor math.imag "
        "math.is_finite math.is_inf math.is_nan math.is_non_decreasing math.is_strictly_increasing "
        "math.l2_normalize math.lbeta math.lgamma math.log math.log1p math.log_sigmoid math.log_softmax math.ndtri "
        "math.negative math.real math.reciprocal math.reciprocal_no_nan math.reduce_euclidean_norm "
        "math.reduce_logsumexp math.reduce_max math.reduce_mean math.reduce_min math.reduce_prod math.reduce_std "
        "math.reduce_sum math.reduce_variance math.rint math.round math.rsqrt math.sigmoid math.sign math.sin "
        "math.sinh math.softmax math.softplus math.softsign math.sqrt math.square math.tan math.tanh math.top_k "
        "math.zero_fraction nn.compute_average_loss nn.crelu nn.ctc_unique_labels nn.elu nn.gelu "
        "nn.isotonic_regression nn.l2_loss nn.l2_normalize nn.leaky_relu nn.log_softmax nn.relu nn.relu6 "
        "nn.scale_regularization_loss nn.selu nn.sigmoid nn.silu nn.softmax nn.softplus nn.softsign nn.swish "
        "nn.tanh nn.top_k nn.zero_fraction linalg.adjoint linalg.det linalg.diag linalg.diag_part "
        "linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh linalg.expm linalg.inv linalg.l2_normalize "
        "linalg.logdet linalg.lu linalg.matrix_rank linalg.matrix_transpose linalg.norm linalg.normalize "
        "linalg.pinv linalg.qr linalg.slogdet linalg.sqrtm linalg.svd linalg.tensor_diag linalg.tensor_diag_part "
        "linalg.trace signal.dct signal.fftshift signal.idct signal.ifftshift "
        "signal.mfccs_from_log_mel_spectrograms signal.rfft signal.rfft2d"
    ),
    "[x y]": "math.accumulate_n math.add_n linalg.global_norm signal.fft3d signal.ifft3d signal.irfft3d signal.rfft3d",
    "x y": (
        "math.add math.atan2 math.divide math.divide_no_nan math.equal math.floordiv math.floormod math.greater "
        "math.greater_equal math.igamma math.igammac math.less math.less_equal math.maximum math.minimum math.mod "
        "math.multiply math.multiply_no_nan math.nextafter math.not_equal math.polygamma math.pow "
        "math.squared_difference math.subtract math.truediv math.xdivy math.xlog1py math.xlogy math.zeta "
        "nn.log_poisson_loss nn.sigmoid_cross_entropy_with_logits nn.softmax_cross_entropy_with_logits "
        "linalg.banded_triangular_solve linalg.cholesky_solve linalg.cross linalg.lstsq linalg.matmul "
        "linalg.matvec linalg.solve linalg.triangular_solve linalg.tridiagonal_matmul linalg.tridiagonal_solve"
    ),
    "x 2": "math.approx_max_k nn.approx_max_k nn.collapse_repeated signal.overlap_and_add",
    "image pool": (
        "math.betainc nn.avg_pool nn.avg_pool2d nn.max_pool nn.max_pool2d nn.max_pool_with_argmax "
        "nn.weighted_moments linalg.band_part linalg.eigh_tridiagonal signal.frame"
    ),
    "v v": "math.confusion_matrix",
    "i x 2": "math.in_top_k nn.in_top_k",
    "i": "math.invert_permutation",
    "b b": "math.logical_and math.logical_or math.logical_xor",
    "b": "math.logical_not math.reduce_all math.reduce_any",
    "[x x] v": "math.polyval",
    "half x": "math.scalar_mul",
    "i i": (
        "math.segment_max math.segment_mean math.segment_min math.segment_prod math.segment_sum nn.embedding_lookup"
    ),
    "2 3": "math.sobol_sample",
    "v i 3": (
        "math.unsorted_segment_max math.unsorted_segment_mean math.unsorted_segment_min math.unsorted_segment_prod "
        "math.unsorted_segment_sqrt_n math.unsorted_segment_sum"
    ),
    "sampler all": "nn.all_candidate_sampler",
    "image filter": "nn.atrous_conv2d nn.conv2d nn.convolution linalg.tensordot",
    "atrous transpose": "nn.atrous_conv2d_transpose",
    "sequence pool": "nn.avg_pool1d nn.max_pool1d",
    "volume pool": "nn.avg_pool3d nn.max_pool3d",
    "global norm": "nn.batch_norm_with_global_normalization",
    "batch norm": "nn.batch_normalization",
    "x v": "nn.bias_add linalg.set_diag",
    "hits": "nn.compute_accidental_hits",
    "sequence filter": "nn.conv1d",
    "transpose1": "nn.conv1d_transpose nn.conv_transpose",
    "transpose2": "nn.conv2d_transpose",
    "volume filter": "nn.conv3d",
    "transpose3": "nn.conv3d_transpose",
    "logits": "nn.ctc_beam_search_decoder nn.ctc_greedy_decoder",
    "ctc": "nn.ctc_loss",
    "blocks": "nn.depth_to_space",
    "image filter strides": "nn.depthwise_conv2d",
    "depthwise filter": "nn.depthwise_conv2d_backprop_filter",
    "depthwise input": "nn.depthwise_conv2d_backprop_input",
    "morphology": "nn.dilation2d nn.erosion2d",
    "x half": "nn.dropout",
    "embedding": "nn.embedding_lookup_sparse nn.safe_embedding_lookup_sparse",
    "sampler unigram": "nn.fixed_unigram_candidate_sampler",
    "fractional": "nn.fractional_avg_pool",
    "image 2": "nn.fractional_max_pool nn.space_to_depth",
    "sampler": "nn.learned_unigram_candidate_sampler",
    "image": "nn.local_response_normalization nn.lrn signal.inverse_mdct",
    "x 1": "nn.moments",
    "sampled loss": "nn.nce_loss nn.sampled_softmax_loss",
    "moments": "nn.normalize_moments",
    "pool": "nn.pool",
    "separable": "nn.separable_conv2d",
    "space to batch": "nn.space_to_batch",
    "i x": "nn.sparse_softmax_cross_entropy_with_logits",
    "x [0]": "nn.sufficient_statistics",
    "x x x": "nn.weighted_cross_entropy_with_logits",
    "einsum": "linalg.einsum",
    "3": (
        "linalg.eye signal.hamming_window signal.hann_window signal.kaiser_bessel_derived_window "
        "signal.kaiser_window signal.linear_to_mel_weight_matrix signal.vorbis_window"
    ),
    "c": "linalg.logm signal.fft signal.fft2d signal.ifft signal.ifft2d signal.irfft signal.irfft2d",
    "x i": "linalg.lu_matrix_inverse linalg.lu_reconstruct",
    "lu": "linalg.lu_solve",
    "stft": "signal.inverse_stft",
    "mdct": "signal.mdct",
    "v 4 2": "signal.stft",
}
"""The functions called with each arguments of ``arguments.ARGUMENTS``."""

GAPS: dict[str, str] = {
    "math.approx_min_k nn.approx_min_k": "no kernel for the CPU",
    "signal.fftnd signal.ifftnd signal.rfftnd signal.irfftnd": "no kernel for the CPU",
    "signal.inverse_stft_window_fn": "gives a function of Python",
    "nn.with_space_to_batch": "takes a function of Python, which is called with plain numbers",
}
"""Functions that are not called, with the reason."""
