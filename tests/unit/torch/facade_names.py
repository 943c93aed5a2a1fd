"""Names that existing programs use, with what is missing and why."""

GROUPS = {
    "jit": (
        "script CompilationUnit load save trace ScriptModule script_method last_executed_optimized_graph "
        "annotate freeze isinstance ignore export interface optimized_execution Future Error Attribute unused "
        "TracerWarning fork wait frontend.NotSupportedError annotations.Any is_scripting trace_module mobile "
        "Final TracingCheckError frontend.get_jit_def export_opnames frontend.FrontendError strict_fusion "
        "quantized.quantize_linear_modules set_fusion_strategy annotations.get_signature fuser "
        "script_if_tracing is_tracing annotations.BroadcastingList2 run_frozen_optimizations"
    ),
    "nn": (
        "Module Parameter Linear Conv2d ModuleList Sequential ReLU BatchNorm2d ModuleDict LSTMCell Conv3d "
        "Conv1d Dropout utils.rnn.pad_packed_sequence Dropout2d LSTM utils.rnn.pack_padded_sequence "
        "BatchNorm1d utils.rnn.pack_sequence Tanh ConvTranspose2d ParameterList "
        "utils.parametrize.register_parametrization utils.parametrize.cached SELU MaxPool2d GRU "
        "utils.rnn.PackedSequence MultiheadAttention BatchNorm3d"
    ),
    "nn.functional": (
        "relu linear interpolate dropout hardsigmoid hardswish gelu max_pool2d adaptive_avg_pool2d hardtanh "
        "log_softmax embedding relu6 mish softplus elu leaky_relu silu"
    ),
    "": (
        "rand randn tensor ones Tensor zeros arange cat neg device mm get_default_dtype quantize_per_tensor "
        "set_default_dtype empty add randint no_grad relu allclose max eye sigmoid tanh mul sub div sin relu_ "
        "equal matmul lerp min rand_like abs zeros_like log LongTensor exp pow sum unsqueeze where chunk "
        "linspace tensordot fmod remainder eq gt lt ne atan2 ge erfc erf threshold cos normal ones_like stack "
        "atan acos clamp IntTensor FloatTensor DoubleTensor BoolTensor logspace randperm tril_indices "
        "triu_indices dropout full save load inference_mode addcmul log2 tan round log1p log10 sinh rsqrt "
        "frac asin sqrt expm1 reciprocal cosh lgamma int64 float32 int32 float64 bool int8 int16 bfloat16 "
        "float16 float double qint32 qint8 quint8 long complex64 uint8 int complex32 complex128 cfloat "
        "cdouble manual_seed is_tensor Generator Size finfo iinfo from_numpy"
    ),
    "others": (
        "testing.FileCheck cuda.is_available autograd.grad testing.assert_close ops.aten.relu "
        "autograd.Function autograd.Variable autograd.profiler.profile testing.make_tensor random.fork_rng"
    ),
    "Tensor": (
        "size type to sum add_ dtype device view relu backward requires_grad_ shape cpu cuda type_as item "
        "clone chunk reshape grad sub sort sin name values transpose detach unsqueeze dim float cos sub_ "
        "clamp data_ptr grad_fn add tolist numel prod zero_ data mm isnan is_floating_point permute addcmul "
        "fill_ split copy_ storage H mH mT ndim int norm masked_fill resize_ to_sparse detach_ T is_cuda conj "
        "unfold sigmoid double abs as_strided exp"
    ),
}
"""Where names are found in the façade -> the names, most used first."""
SPARSE = "tensors are dense"
MISSING = {
    "Tensor.values": SPARSE,
    "jit.annotations.get_signature": "signatures are read by engine.frontend.compilation.function_schema",
}  # fmt: skip
"""Name -> why it is not there."""
