"""Where programs find what the original keeps internal: names under `torch`, methods of parts of graphs."""

HOMES = (
    "jit.set_fusion_strategy jit.passes.freeze_module jit.passes.peephole jit.passes.constant_propagation "
    "jit.passes.propagate_shapes_on_graph jit.internal.symbolic_shapes_test_mode_enabled "
    "jit.flags.set_symbolic_shapes_test_mode jit.parse_ir jit.fork jit.function_from_graph "
    "jit.flags.get_fusion_group_inlining jit.flags.set_fusion_group_inlining jit.wait jit.passes.inline "
    "jit.flags.set_texpr_reductions_enabled jit.passes.erase_shape_information jit.awaitable jit.awaitable_wait "
    "jit.flags.get_can_fuse_on_cpu jit.flags.set_can_fuse_on_cpu jit.passes.propagate_device "
    "jit.flags.graph_executor_optimize jit.flags.set_profiling_executor jit.flags.get_te_must_use_llvm_cpu "
    "jit.flags.set_autodiff_subgraph_inlining jit.flags.set_te_must_use_llvm_cpu jit.flags.set_texpr_fuser_enabled "
    "jit.flags.get_texpr_fuser_enabled jit.internal._disable_emit_hooks jit.get_trace_graph jit.passes.dce "
    "jit.passes.complete_shape_analysis jit.Await jit.passes.batch_mm jit.passes.remove_mutation "
    "jit.clear_class_registry jit.passes.propagate_shapes jit.passes.canonicalize jit.frontend.argument_names "
    "jit.passes.propagate_shapes_on_graph_and_build_compute jit.logging.LockingLogger jit.logging.add_stat_value "
    "jit.logging.set_logger jit.passes.loop_unrolling jit.passes.cse jit.awaitable_nowait jit.passes.lower_all_tuples "
    "jit.types.TensorType jit.Graph jit.unwrap_optional jit.tensorexpr.TensorExprKernel "
    "jit.passes.create_autodiff_subgraphs ops._test.leaky_relu jit.passes.propagate_dtype jit.passes jit.ScriptProfile "
    "jit.passes.custom_pattern_based_rewrite_graph jit.overload jit.interpret_graph jit.IgnoreContextManager "
    "jit.frontend._IS_ASTUNPARSE_INSTALLED jit.passes.functional_to_inplace_activation jit.logging.time_point "
    "jit.passes.run_decompositions jit.passes.peephole_list_idioms jit.passes.refine_integer_values jit.types.IntType "
    "jit.types.new_symbol jit.upgraders.add_entry jit.upgraders.Entry jit.upgraders.remove_entry "
    "jit.upgraders.populate jit.upgraders.remove jit.upgraders.dump jit.upgraders.size "
    "jit.internal.fuser_get_fused_kernel_code jit.passes.constant_pooling jit.types.StringType jit.types.TupleType "
    "jit.overload_method nn.functional.linear jit.passes.inline_fork_wait jit.passes.inplace_to_functional_activation "
    "ops._test.__dict__ ops._OpNamespace ops._test.get_first ops._test.cat jit.passes.create_functional_graphs "
    "jit.passes.fuse_linear jit.internal.check_empty_containers jit.flags.set_tracer_state_warn "
    "jit.flags.get_tracer_state_warn jit.types.ListType"
).split()
GRAPH = (
    "addInput alias_db appendNode block copy create createClone dump_alias_db eraseInput eraseOutput findAllNodes "
    "findNode inputs insert insertConstant insertGraph insertNode insertPoint insert_point_guard lint "
    "makeMultiOutputIntoTuple nodes outputs param_node permuteInputs prependNode registerOutput return_node "
    "setInsertPoint str"
).split()
NODE = (
    "addBlock addInput addOutput attributeNames blocks c c_ copyAttributes copyMetadata destroy eraseOutput f f_ "
    "findAllNodes findNode fs fs_ g g_ getModuleHierarchy gs gs_ hasAttribute hasAttributes hasMultipleOutputs hasUses "
    "i i_ inputs inputsAt inputsSize insertAfter insertBefore is is_ isAfter isBefore isNondeterministic ival ival_ "
    "kind kindOf matches moveAfter moveBefore mustBeNone namedInput output outputs outputsAt outputsSize owningBlock "
    "prev removeAllInputs removeAttribute removeInput replaceAllUsesWith replaceInput replaceInputWith s s_ schema "
    "scopeName sourceRange ss ss_ t t_ ts ts_ ty ty_ tys tys_ z z_"
).split()
VALUE = (
    "copyMetadata debugName inferTypeFrom isCompleteTensor node offset replaceAllUsesAfterNodeWith replaceAllUsesWith "
    "requiresGrad requires_grad setDebugName setType setTypeAs toIValue type unique uses"
).split()
BLOCK = (
    "addInputToBlock addNode findAllNodes findNode inputs nodes outputs owningNode paramNode registerOutput returnNode"
).split()
USE = "isAfter offset user".split()
TYPE = (
    "annotation_str containedTypes contiguous device dim dtype isSubtypeOf is_interface_type kind requires_grad "
    "scalarType sizes str strides symbolic_sizes undefined varyingSizes with_device with_dtype with_sizes"
).split()
COMPILED = "graph graph_for code schema inlined_graph save save_to_buffer qualified_name".split()
MODULE = "graph graph_for code inlined_graph save save_to_buffer _c".split()
