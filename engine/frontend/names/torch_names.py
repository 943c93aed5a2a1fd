"""The names that the torch namespaces have.

In: the path of a namespace and a name.  Out: True if programs find anything there.  Many operators are methods only, of
tensors, lists, strings or dicts; others are functions of `torch.nn.functional` alone; and some functions of `torch` are
no operators at all: these are found, and calling them is refused with another message.
"""

from __future__ import annotations

from typing import Final

from engine.aten.dispatch import table

_ONLY_METHODS: Final = frozenset((
    "Bool Complex ComplexImplicit Delete Float FloatImplicit Int IntImplicit ScalarImplicit absolute_ add_ "
    "addbmm_ addcdiv_ addcmul_ addmm_ addr_ alias append arctan2_ atan2_ baddbmm_ bernoulli_ bin bitwise_and_ "
    "bitwise_left_shift_ bitwise_not_ bitwise_or_ bitwise_right_shift_ bitwise_xor_ capitalize cauchy_ center chr "
    "clear contiguous copy copy_ copysign_ count cumprod_ cumsum_ degrees dict digamma_ dim div_ divide_ divmod "
    "element_size endswith eq_ erfinv_ expand expand_as expandtabs exponential_ extend fabs factorial "
    "fill_diagonal_ find float_power_ floor_divide_ floordiv fmod_ format gamma ge_ geometric_ get greater_ "
    "greater_equal_ gt_ hash heaviside_ hex hypot_ igamma_ igammac_ index index_add_ index_copy_ index_fill_ "
    "index_reduce_ insert is_contiguous is_leaf is_scripting isalnum isalpha isdecimal isdigit isidentifier "
    "islower isnumeric isprintable isspace istitle isupper item items join keys le_ len lerp_ less_ less_equal_ "
    "lgamma_ lift_fresh list ljust log_normal_ logical_and_ logical_not_ logical_or_ logical_xor_ lower lstrip "
    "lt_ mH mT masked_fill_ masked_scatter_ mathremainder matrix_H modf mul_ multiply_ mvlgamma_ ne_ new_empty "
    "new_empty_strided new_full new_ones new_zeros nextafter_ nll_loss_forward nonzero_numpy normal_ not_equal_ "
    "numpy_T oct ord output_nr partition percentFormat polygamma_ pop popitem pow_ put_ radians random_ "
    "remainder_ remove renorm_ repeat replace requires_grad_ reshape_as resize_ retain_grad retains_grad reverse "
    "rfind rindex rjust rpartition rsplit rstrip scatter_ scatter_add_ scatter_reduce_ set_ setdefault sgn_ sign_ "
    "size slice sorted splitlines squeeze_ startswith storage_offset str stride strip sub_ subtract_ sum_to_size "
    "swapaxes_ swapcase swapdims_ t_ title to transpose_ tril_ triu_ true_divide_ type_as uniform_ unique_dim "
    "unsqueeze_ update upper values view view_as warn zfill"
).split())  # fmt: skip
_ONLY_IN_NN: Final = frozenset((
    "adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d avg_pool2d avg_pool3d "
    "binary_cross_entropy col2im cross_entropy_loss elu elu_ fractional_max_pool2d fractional_max_pool3d gelu "
    "gelu_ glu grad hardsigmoid hardsigmoid_ hardswish hardswish_ hardtanh hardtanh_ huber_loss im2col l1_loss "
    "leaky_relu leaky_relu_ linear log_sigmoid max_pool2d_with_indices max_pool3d_with_indices max_unpool2d "
    "max_unpool3d mish mish_ mse_loss multi_margin_loss multilabel_margin_loss nll_loss nll_loss2d nll_loss_nd "
    "one_hot pad pad_sequence reflection_pad1d reflection_pad2d reflection_pad3d relu6 relu6_ replication_pad1d "
    "replication_pad2d replication_pad3d scaled_dot_product_attention silu silu_ smooth_l1_loss soft_margin_loss "
    "softplus softshrink unfold upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d "
    "upsample_nearest2d upsample_nearest3d upsample_trilinear3d"
).split())  # fmt: skip
_OF_FUNCTIONAL: Final = frozenset((
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
    "adaptive_max_pool3d alpha_dropout avg_pool1d avg_pool2d avg_pool3d batch_norm bilinear binary_cross_entropy "
    "binary_cross_entropy_with_logits celu celu_ channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d "
    "conv_transpose2d conv_transpose3d cosine_embedding_loss cosine_similarity ctc_loss dropout elu elu_ "
    "embedding embedding_bag feature_alpha_dropout fractional_max_pool2d fractional_max_pool3d gelu glu grad "
    "group_norm hardshrink hardsigmoid hardswish hardtanh hardtanh_ hinge_embedding_loss huber_loss instance_norm "
    "kl_div l1_loss layer_norm leaky_relu leaky_relu_ linear log_softmax margin_ranking_loss max_pool1d "
    "max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d max_pool3d_with_indices max_unpool2d "
    "max_unpool3d mish mse_loss multi_margin_loss multilabel_margin_loss native_channel_shuffle nll_loss one_hot "
    "pad pairwise_distance pdist pixel_shuffle pixel_unshuffle poisson_nll_loss prelu relu relu6 relu_ rms_norm "
    "rrelu rrelu_ scaled_dot_product_attention selu selu_ sigmoid silu smooth_l1_loss soft_margin_loss softmax "
    "softplus softshrink tanh threshold threshold_ triplet_margin_loss unfold"
).split())  # fmt: skip
_NO_OPERATORS: Final = frozenset((
    "AcceleratorError AggregationType AliasDb AnyType Argument ArgumentSpec AwaitType BFloat16Storage "
    "BFloat16Tensor BenchmarkConfig BenchmarkExecutionStats Block BoolStorage BoolTensor BoolType BufferDict "
    "ByteStorage ByteTensor CallStack Capsule CharStorage CharTensor ClassType Code CompilationUnit "
    "CompleteArgumentSpec ComplexDoubleStorage ComplexFloatStorage ComplexType ConcreteModuleType "
    "ConcreteModuleTypeBuilder DeepCopyMemoTable DeserializationStorageContext DeviceObjType DictType "
    "DisableTorchFunction DisableTorchFunctionSubclass DispatchKey DispatchKeySet DoubleStorage DoubleTensor "
    "EnumType ErrorReport Event ExcludeDispatchKeyGuard ExecutionPlan FatalError FileCheck FloatStorage "
    "FloatTensor FloatType FunctionSchema Future FutureType Generator GradScaler Gradient Graph "
    "GraphExecutorState HalfStorage HalfTensor IODescriptor InferredType IntStorage IntTensor IntType "
    "InterfaceType JITException ListType LiteScriptModule LockingLogger LoggerBase LongStorage LongTensor "
    "ModuleDict Node NoneType NoopLogger NumberType OperatorInfo OptionalType OutOfMemoryError ParameterDict "
    "PyObjectType PyTorchFileReader PyTorchFileWriter QInt32Storage QInt8Storage QUInt2x4Storage QUInt4x2Storage "
    "QUInt8Storage RRefType ScriptClass ScriptClassFunction ScriptDict ScriptDictIterator ScriptDictKeyIterator "
    "ScriptFunction ScriptList ScriptListIterator ScriptMethod ScriptModule ScriptModuleSerializer ScriptObject "
    "ScriptObjectProperty SerializationStorageContext ShortStorage ShortTensor StaticModule Storage StorageBase "
    "Stream StreamObjType StringType SymBool SymBoolType SymFloat SymInt SymIntType Tag Tensor TensorType "
    "ThroughputBenchmark TracingState TupleType Type TypedStorage UnionType UntypedStorage Use Value alias_copy "
    "are_deterministic_algorithms_enabled as_strided_copy asarray autocast autocast_decrement_nesting "
    "autocast_increment_nesting batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt "
    "batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_stats batch_norm_update_stats "
    "ccol_indices_copy choose_qparams_optimized classproperty clear_autocast_cache col_indices_copy compile "
    "compiled_with_cxx11_abi cond crow_indices_copy cudnn_affine_grid_generator cudnn_batch_norm "
    "cudnn_convolution cudnn_convolution_add_relu cudnn_convolution_relu cudnn_convolution_transpose "
    "cudnn_grid_sampler cudnn_is_acceptable detach_copy diagonal_copy dsmm dtype eig empty_permuted "
    "empty_quantized enable_grad expand_copy fake_quantize_per_channel_affine fbgemm_linear_fp16_weight "
    "fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight "
    "fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16 "
    "fbgemm_pack_quantized_matrix finfo fork from_dlpack from_file from_numpy frombuffer "
    "fused_moving_avg_obs_fake_quant get_autocast_cpu_dtype get_autocast_gpu_dtype get_autocast_ipu_dtype "
    "get_autocast_xla_dtype get_default_device get_default_dtype get_deterministic_debug_mode get_device_module "
    "get_file_path get_float32_matmul_precision get_num_interop_threads get_num_threads get_rng_state hash_tensor "
    "histogramdd hsmm hspmm iinfo import_ir_module import_ir_module_from_buffer indices_copy inference_mode "
    "init_num_threads initial_seed int_repr is_anomaly_check_nan_enabled is_anomaly_enabled "
    "is_autocast_cache_enabled is_autocast_ipu_enabled is_autocast_xla_enabled "
    "is_deterministic_algorithms_warn_only_enabled is_distributed is_inference_mode_enabled is_storage is_tensor "
    "is_vulkan_available is_warn_always_enabled layout load lobpcg lstsq lu matrix_rank memory_format "
    "merge_type_from_type_comment miopen_batch_norm miopen_convolution miopen_convolution_add_relu "
    "miopen_convolution_relu miopen_convolution_transpose miopen_ctc_loss miopen_depthwise_convolution miopen_rnn "
    "mkldnn_adaptive_avg_pool2d mkldnn_convolution mkldnn_linear_backward_weights mkldnn_max_pool2d "
    "mkldnn_max_pool3d mkldnn_rnn_layer native_norm no_grad ormqr parse_ir parse_schema parse_type_comment "
    "pca_lowrank permute_copy prepare_multiprocessing_environment "
    "profiler_allow_cudagraph_cupti_lazy_reinit_cuda12 q_per_channel_axis q_per_channel_scales "
    "q_per_channel_zero_points q_scale q_zero_point qscheme quantize_per_channel quantize_per_tensor "
    "quantize_per_tensor_dynamic quantized_batch_norm quantized_gru quantized_gru_cell quantized_lstm "
    "quantized_lstm_cell quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d quantized_rnn_relu_cell "
    "quantized_rnn_tanh_cell resize_as_sparse_ row_indices_copy saddmm save seed "
    "select_copy set_anomaly_enabled set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled "
    "set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype set_autocast_ipu_dtype "
    "set_autocast_ipu_enabled set_autocast_xla_dtype set_autocast_xla_enabled set_default_device "
    "set_default_dtype set_default_tensor_type set_deterministic_debug_mode set_float32_matmul_precision "
    "set_flush_denormal set_num_interop_threads set_num_threads set_printoptions set_rng_state set_warn_always "
    "slice_copy slice_inverse smm solve sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor "
    "sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor split_copy split_with_sizes_copy spmm sspaddmm "
    "svd_lowrank sym_constrain_range sym_constrain_range_for_size sym_float sym_fresh_size sym_int sym_ite "
    "sym_max sym_min sym_not sym_sqrt sym_sum symeig t_copy thread_safe_generator to_dlpack typename unbind_copy "
    "unfold_copy unify_type_list unique unravel_index unsafe_split_with_sizes unsqueeze_copy "
    "use_deterministic_algorithms values_copy view_as_complex_copy view_as_real_copy vmap while_loop"
).split())  # fmt: skip
_OF_JIT: Final = frozenset((
    "Attribute CompilationUnit Error Final Future Iterator ONNXTracedModule RecursiveScriptClass "
    "RecursiveScriptModule ScriptFunction ScriptModule ScriptWarning TopLevelTracedModule TracedModule "
    "TracerWarning TracingCheckError annotate contextmanager enable_onednn_fusion export export_opnames fork "
    "freeze fuser ignore interface is_scripting is_tracing isinstance jit_module_from_flatbuffer "
    "last_executed_optimized_graph load onednn_fusion_enabled optimize_for_inference optimized_execution "
    "run_frozen_optimizations save save_jit_module_to_flatbuffer script script_if_tracing script_method "
    "set_fusion_strategy set_module strict_fusion trace trace_module unused wait"
).split())  # fmt: skip
_PREFIXED: Final = frozenset(["torch.linalg", "torch.special", "torch.fft"])


def has_name(path: str, name: str, operator: str) -> bool:
    """True if the namespace has that name, which would stand for `operator`; names that begin with `_` always pass."""
    if name.startswith("_"):
        return True
    is_operator = bool(table.overloads(operator))
    if path == "torch":
        return name in _NO_OPERATORS or (is_operator and name not in _ONLY_METHODS and name not in _ONLY_IN_NN)
    if path == "torch.nn.functional":
        return name in _OF_FUNCTIONAL
    if path == "torch.jit":
        return name in _OF_JIT
    return is_operator or path not in _PREFIXED
