"""`torch._C`: the names of PyTorch's extension module that programs, converters and tests use.

In: a name.  Out: what it stands for here, by the table `HOMES`, or something that refuses to be used with the words of
`REFUSED`; any other name is an AttributeError.  docs/compatibility.md lists all of them.
"""

from __future__ import annotations

from typing import Final

from engine.torch.namespace.missing_names import refuse_unknown_names
from engine.torch.namespace.type_names import TYPES

_PASSES: Final = (
    "autocast batch_mm canonicalize canonicalize_graph_fuser_ops complete_shape_analysis constant_loop_unrolling "
    "constant_pooling constant_propagation constant_propagation_immutable_types create_autodiff_subgraphs "
    "create_functional_graphs cse custom_pattern_based_rewrite_graph dce decompose_ops erase_number_types "
    "erase_shape_information fold_frozen_conv_add_or_sub fold_frozen_conv_bn fold_frozen_conv_mul_or_div "
    "fold_frozen_linear_bn functional_to_inplace_activation fuse_add_relu fuse_linear inline inline_fork_wait "
    "inline_functional_graphs inplace_to_functional_activation loop_unrolling lower_all_tuples peephole "
    "peephole_list_idioms propagate_device propagate_dtype propagate_shapes_on_graph "
    "propagate_shapes_on_graph_and_build_compute refine_integer_values refine_tuple_types "
    "remove_expands remove_inplace_ops remove_mutation run_decompositions specialize_autogradzero "
    "transpose_frozen_linear"
)
_SETTINGS: Final = (
    "inline_everything_mode nvfuser_enabled num_profiled_runs profiling_executor profiling_mode "
    "symbolic_shapes_test_mode te_generate_block_code te_must_use_llvm_cpu texpr_dynamic_shape_enabled "
    "texpr_fuser_enabled texpr_reductions_enabled tracer_state_warn autocast_mode llga_enabled"
)
_ASKED: Final = "inline_everything_mode num_profiled_runs te_generate_block_code te_must_use_llvm_cpu tracer_state_warn"
_ANSWERED: Final = (
    "llga_enabled nvfuser_enabled texpr_dynamic_shape_enabled texpr_fuser_enabled texpr_reductions_enabled"
)
_DEVICES: Final = ("cpu", "gpu", "cpu_legacy")
_GRAPHS: Final = "Graph Node Value Block Use"
_FLAGS, _JIT, _INTERNAL = "engine.torch.jit.flags", "engine.torch.jit", "engine.torch.jit.bindings"

HOMES: Final[dict[str, str]] = {
    **{f"_jit_pass_{name}": f"engine.torch.jit.passes:{name}" for name in _PASSES.split()},
    "_jit_pass_integer_value_refinement": "engine.torch.jit.passes:refine_integer_values",
    "_jit_pass_remove_dropout": "engine.torch.jit.passes:remove_dropout_of",
    "_jit_pass_dce_graph": "engine.torch.jit.passes:dce",
    "_jit_pass_lint": f"{_INTERNAL}:lint",
    "_jit_erase_non_input_shape_information": f"{_INTERNAL}:erase_non_input_shape_information",
    "_jit_pass_erase_non_input_shape_information": f"{_INTERNAL}:erase_non_input_shape_information",
    "_enable_mobile_interface_call_export": "engine.torch.jit.settings:enable_mobile_interface_call_export",
    "_propagate_shapes": "engine.torch.jit.passes:propagate_shapes",
    "_jit_shape_compute_graph_for_node": "engine.torch.jit.passes:shape_compute_graph_for_node",
    "_jit_register_shape_compute_graph_for_node": "engine.torch.jit.passes:register_shape_compute_graph_for_node",
    "_ShapeComputeGraphMapping": "engine.torch.jit.symbolic_shapes.propagation:ShapeComputeGraphMapping",
    "_jit_register_decomposition_for_schema": "engine.torch.jit.passes:register_decomposition_for_schema",
    "_freeze_module": "engine.torch.jit.passes:freeze_handle",
    "_jit_pass_optimize_for_mobile": "engine.torch.jit.passes:optimize_handle_for_mobile",
    "_jit_pass_insert_prepacked_ops": "engine.torch.jit.passes:insert_prepacked_ops",
    "_jit_pass_fuse_clamp_w_prepacked_linear_conv": "engine.torch.jit.passes:fuse_prepacked_clamp",
    "_jit_pass_fold_prepacking_ops": "engine.torch.jit.passes:fold_prepacking_ops",
    "_jit_pass_transform_conv1d_to_conv2d": "engine.torch.jit.passes:conv1d_to_conv2d",
    "_MobileOptimizerType": "engine.torch.jit.scripting.mobile_optimizing:MobileOptimizerType",
    **{f"_jit_set_{name}": f"{_FLAGS}:set_{name}" for name in _SETTINGS.split()},
    **{f"_jit_get_{name}": f"{_FLAGS}:get_{name}" for name in _ASKED.split()},
    **{f"_jit_{name}": f"{_FLAGS}:get_{name}" for name in _ANSWERED.split()},
    **{f"_jit_can_fuse_on_{name}": f"{_FLAGS}:get_can_fuse_on_{name}" for name in _DEVICES},
    **{f"_jit_override_can_fuse_on_{name}": f"{_FLAGS}:set_can_fuse_on_{name}" for name in _DEVICES},
    **{f"_debug_{verb}_fusion_group_inlining": f"{_FLAGS}:{verb}_fusion_group_inlining" for verb in ("get", "set")},
    "_debug_set_autodiff_subgraph_inlining": f"{_FLAGS}:set_autodiff_subgraph_inlining",
    "_jit_symbolic_shapes_test_mode_enabled": f"{_FLAGS}:get_symbolic_shapes_test_mode",
    "_jit_set_fusion_strategy": f"{_JIT}:set_fusion_strategy",
    "_jit_set_bailout_depth": f"{_FLAGS}:set_bailout_depth",
    "_get_graph_executor_optimize": f"{_FLAGS}:graph_executor_optimize",
    "_set_graph_executor_optimize": f"{_FLAGS}:graph_executor_optimize",
    "_jit_set_emit_hooks": "engine.torch.jit.scripting.emit_hooks:set_emit_hooks",
    "_jit_get_emit_hooks": "engine.torch.jit.scripting.emit_hooks:get_emit_hooks",
    "_last_executed_optimized_graph": f"{_JIT}:last_executed_optimized_graph",
    **{name: f"engine.torch.compiled.types:{name}" for name in TYPES.split()},
    **dict.fromkeys(_GRAPHS.split(), "engine.torch.compiled.graphs"),
    "AliasDb": "engine.torch.compiled.graphs:AliasDbFacade",
    "Argument": "engine.torch.compiled.schemas",
    "FunctionSchema": "engine.torch.compiled.schemas",
    "Code": "engine.torch.compiled.debug_state", "GraphExecutorState": "engine.torch.compiled.debug_state",
    **dict.fromkeys("CompilationUnit Future ScriptFunction ScriptMethod ScriptObject".split(), _JIT),
    "ScriptModule": "engine.torch.jit.scripting.module_handle:ModuleHandle",
    "ScriptList": "engine.torch.compiled.script_containers", "ScriptDict": "engine.torch.compiled.script_containers",
    "_get_model_extra_files_from_buffer": f"{_JIT}.mobile:extra_files_from_buffer",
    "_Await": f"{_JIT}:Await", "JITException": f"{_JIT}:Error",
    "AggregationType": "engine.torch.jit.logging",
    **dict.fromkeys("Generator Size device dtype layout memory_format qscheme".split(), "engine.torch"),
    "TensorBase": "engine.torch:Tensor", "_TensorBase": "engine.torch:Tensor",
    "_GeneratorType": "engine.torch.compiled.types:GeneratorType",
    "parse_ir": f"{_JIT}:parse_ir", "parse_schema": f"{_INTERNAL}:parse_schema",
    "InferredType": f"{_INTERNAL}:InferredType", "_jit_try_infer_type": f"{_INTERNAL}:try_infer_type",
    "_jit_assert_is_instance": f"{_INTERNAL}:assert_is_instance",
    "_jit_flatten": f"{_INTERNAL}:flatten", "_jit_unflatten": f"{_INTERNAL}:unflatten",
    "_jit_get_operation": "engine.torch.ops:get_operation",
    "_jit_get_all_schemas": f"{_INTERNAL}:get_all_schemas",
    "_jit_get_schemas_for_operator": f"{_INTERNAL}:get_schemas_for_operator",
    "_jit_script_compile": f"{_INTERNAL}:script_compile",
    "_jit_object_is_non_holding": f"{_INTERNAL}:object_is_non_holding",
    "_ivalue_tags_match": f"{_INTERNAL}:ivalue_tags_match",
    "_create_function_from_graph": f"{_JIT}:function_from_graph",
    "_create_function_from_trace": f"{_INTERNAL}:create_function_from_trace",
    "_jit_interpret_graph": f"{_JIT}:interpret_graph",
    "_jit_clear_class_registry": f"{_JIT}:clear_class_registry",
    "_get_tracing_state": "engine.frontend.tracing.state:current",
    "_ivalue_debug_python_object": f"{_INTERNAL}:ivalue_debug_python_object",
    **dict.fromkeys(("PyTorchFileReader", "PyTorchFileWriter"), "engine.torch.serialization.records"),
    "_infer_size": f"{_INTERNAL}:_infer_size",
    **dict.fromkeys(("DispatchKey", "DispatchKeySet"), "engine.torch.dispatch_keys"),
    "DisableTorchFunctionSubclass": "engine.torch.compiler_marks",
    "_jit_fuser_get_fused_kernel_code": "engine.torch.jit.internal:fuser_get_fused_kernel_code",
    "_new_symbolic_shape_symbol": "engine.torch.compiled.types:new_symbol",
    "_UpgraderEntry": "engine.torch.jit.upgraders:Entry",
    "_test_only_add_entry_to_op_version_map": "engine.torch.jit.upgraders:add_entry",
    "_test_only_remove_entry_to_op_version_map": "engine.torch.jit.upgraders:remove_entry",
    "_test_only_populate_upgraders": "engine.torch.jit.upgraders:populate",
    "_test_only_remove_upgraders": "engine.torch.jit.upgraders:remove",
    "_dump_upgraders_map": "engine.torch.jit.upgraders:dump",
    "_get_upgraders_map_size": "engine.torch.jit.upgraders:size",
    "_get_operator_version_map": "engine.torch.jit.upgraders:entries",
    "_jit_set_logging_option": "engine.ir.pass_log:set_logging_option",
    "_jit_get_logging_option": "engine.ir.pass_log:get_logging_option",
    "_cuda_getCompiledVersion": f"{_INTERNAL}:cuda_compiled_version",
    "_cuda_isInBadFork": f"{_INTERNAL}:never",
    "_llvm_enabled": f"{_INTERNAL}:llvm_enabled",
    "has_lapack": f"{_INTERNAL}:HAS_LAPACK", "has_mkl": f"{_INTERNAL}:HAS_MKL", "has_openmp": f"{_INTERNAL}:HAS_MKL",
}  # fmt: skip
"""Name -> the module that has it, or `module:other`."""

_ONNX = "graphs are not exported to ONNX here: run, save or read them as they are"
_QUANTIZE = "quantized models come from archives: nothing here makes them of others"
_MOBILE = "programs for phones run on the CPU: torch.utils.mobile_optimizer and torch.jit.mobile are for these"
_BACKEND = "there are no back ends to lower modules to: the engine compiles them itself"
_ONEDNN = "there is no oneDNN here: the engine's own kernels take its place"
_FUSERS = "there is one fuser, which has no such part to look at or to turn"
REFUSED: Final[dict[str, str]] = {
    **dict.fromkeys((
        "_jit_pass_onnx _jit_pass_onnx_peephole _jit_pass_onnx_preprocess _jit_pass_onnx_constant_fold "
        "_jit_pass_onnx_remove_print _jit_pass_onnx_graph_shape_type_inference _jit_pass_onnx_function_substitution "
        "_jit_pass_onnx_lint _jit_pass_prepare_division_for_onnx _jit_pass_onnx_assign_output_shape "
        "_jit_pass_onnx_set_dynamic_input_shape _jit_pass_filter_non_tensor_arguments"
    ).split(), _ONNX),
    **dict.fromkeys((
        "_jit_pass_insert_observers _jit_pass_insert_quant_dequant _jit_pass_quant_fusion _jit_pass_quant_finalize "
        "_jit_pass_fold_convbn _jit_pass_swap_functional_linear _jit_pass_replicate_dequantize "
        "_jit_pass_insert_prepack_unpack _jit_pass_fuse_quantized_add_relu"
    ).split(), _QUANTIZE),
    **dict.fromkeys((
        "_jit_pass_vulkan_optimize_for_mobile _jit_pass_metal_optimize_for_mobile "
        "_load_for_lite_interpreter _load_for_lite_interpreter_from_buffer"
    ).split(), _MOBILE),
    **dict.fromkeys("_jit_to_backend _jit_to_backend_selective _jit_to_static_module".split(), _BACKEND),
    **dict.fromkeys((
        "_jit_pass_convert_frozen_ops_to_mkldnn _jit_pass_fuse_frozen_conv_add_relu"
    ).split(), _ONEDNN),
    **dict.fromkeys((
        "_jit_debug_fuser_num_cached_kernel_specs _jit_nvfuser_set_comparison_callback "
        "_jit_nvfuser_clear_comparison_callback _jit_set_nvfuser_horizontal_mode _jit_set_nvfuser_single_node_mode "
        "_jit_set_nvfuser_guard_mode _jit_set_nvfuser_skip_node_kind _jit_get_te_cuda_pointwise_loop_levels "
        "_jit_set_te_cuda_pointwise_loop_levels _jit_get_te_cuda_pointwise_block_count "
        "_jit_set_te_cuda_pointwise_block_count _jit_get_te_cuda_pointwise_block_size "
        "_jit_set_te_cuda_pointwise_block_size _jit_texpr_fallback_allowed _jit_texpr_set_fallback_allowed"
    ).split(), _FUSERS),
    "_jit_pass_lower_graph": "freeze the module (torch.jit.freeze): its weights become constants",
    "_jit_pass_optimize_frozen_graph": "torch.jit.freeze, torch.jit.optimize_for_inference optimize whole modules",
    "_jit_pass_optimize_for_inference": "torch.jit.optimize_for_inference optimizes whole modules",
    "_jit_pass_fuse": "operators are fused when plans are made; look at graph_for(...)",
    "_jit_pass_fuse_tensorexprs": "operators are fused when plans are made; look at graph_for(...)",
    "_jit_run_cpp_tests": "there is no C++ to test",
    "import_ir_module": "torch.jit.load(path) reads archives",
    "import_ir_module_from_buffer": "torch.jit.load(io.BytesIO(data)) reads archives",
    "LiteScriptModule": _MOBILE,
    "_calculate_package_version_based_on_upgraders": "archives are written in one version",
    "_get_version_calculator_flag": "archives are written in one version",
    "_ExcludeDispatchKeyGuard": "torch.autocast(..., enabled=False) leaves autocast out",
    "_jit_debug_module_iterators": "there are no iterators of modules in C++",
}  # fmt: skip
"""Name -> why it does not work here, and what does."""

refuse_unknown_names(__name__, HOMES, REFUSED)


def _jit_has_cpp_tests() -> bool:
    """False: there is no C++ to test."""
    return False


def _log_api_usage_once(event: str) -> None:
    """No effect: nobody is told what is used."""


def _jit_init() -> bool:
    """True: the engine needs no start."""
    return True
