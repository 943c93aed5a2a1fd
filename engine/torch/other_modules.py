"""Modules of PyTorch whose names stand elsewhere here, or refuse to be used in words.

In: a module's name, `engine.torch._jit_internal`.  Out: a module with the names of its row in `MODULES`; None for one
that has no row.  Programs import them for a name or two; each name is found when it is first asked for.
"""

from __future__ import annotations

import sys
from dataclasses import field
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from engine.lang.records import dataclass
from engine.torch.namespace.missing_names import refuse_unknown_names


@dataclass(frozen=True, slots=True)
class Row:
    """A module: what it is for, where its names are (`module`, or `module:other`), and which ones refuse and why."""

    about: str
    homes: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    scope: str = ""
    """The scope whose operators and library functions are names of the module, too."""


def _at(home: str, names: str) -> dict[str, str]:
    """Names that are in one module under the same names."""
    return dict.fromkeys(names.split(), home)


def _as(home: str, **names: str) -> dict[str, str]:
    """Names that are in one module under others."""
    return {name: f"{home}:{other}" for name, other in names.items()}


_JIT, _TYPES, _SETTINGS = "engine.torch.jit", "engine.torch.jit.python_types", "engine.torch.jit.settings"
_SCRIPTING = "engine.torch.jit.scripting"
_MODIFIERS = _at(_JIT, "export ignore unused interface is_scripting Final Future _overload _overload_method")
_ANNOTATIONS = _at("typing", "Any Dict List Optional Tuple Union")
_BROADCASTING = _at(_TYPES, " ".join(f"BroadcastingList{length}" for length in range(1, 7)))
_PUBLIC_AWAIT = _at(_JIT, "_awaitable _awaitable_wait _awaitable_nowait")
_FX = "programs are recorded by torch.jit.trace, whose graphs can be changed; there is no torch.fx"
_ONNX = "there is no export to ONNX; archives (torch.jit.save) run here and in PyTorch"
_QUANTIZED = "quantized models come from archives: nothing here makes them of others"
_NOT_SHARED = "tensors are not shared between processes"
_OFFLINE = "nothing is fetched from the net; torch.load reads files"
_ONE_PROCESS = "there is one process: is_available() is False"
_DYNAMO = "torch.compile gives back what it is given: scripted code is what is compiled here"
_EXPORT = "torch.jit.script and torch.jit.trace make programs that can be saved"

MODULES: Final[dict[str, Row]] = {
    "_jit_internal": Row(
        "torch._jit_internal: what decorators of programs and compilers of PyTorch share.",
        {
            **_MODIFIERS,
            **_ANNOTATIONS,
            **_BROADCASTING,
            **_at(
                _TYPES,
                "FunctionModifiers boolean_dispatch fake_range get_torchscript_modifier is_await is_dict is_final "
                "is_future is_ignored_fn is_list is_optional is_tuple is_union should_drop",
            ),
            **_as(
                _TYPES,
                _copy_to_script_wrapper="copy_to_script_wrapper",
                _qualified_name="qualified_name",
                createResolutionCallbackFromFrame="names_from_frame",
                _disable_emit_hooks="disable_emit_hooks",
                createResolutionCallbackFromClosure="names_from_closure",
                _disable_emit_hooks_decorator="disable_emit_hooks_decorator",
            ),
            **_at(_SETTINGS, "get_callable_argument_names"),
            **_at("engine.torch.jit.internal", "check_empty_containers"),
            **_at("typing", "get_args get_origin"),
            **_as(
                _JIT,
                _Await="Await",
                _IgnoreContextManager="IgnoreContextManager",
                _isinstance="isinstance",
                _drop="unused",
            ),
        },
    ),
    "jit.frontend": Row(
        "torch.jit.frontend: from Python functions to syntax trees.",
        {
            **_at(_SETTINGS, "get_callable_argument_names get_jit_def argument_names _IS_ASTUNPARSE_INSTALLED"),
            **_at("engine.lang.errors", "NotSupportedError"),
            **_as("engine.lang.errors", FrontendError="CompileError"),
            **_as("engine.lang.errors", UnsupportedNodeError="NotSupportedError", FrontendTypeError="CompileError"),
        },
    ),
    "jit.annotations": Row(
        "torch.jit.annotations: the types of signatures.",
        {
            **_ANNOTATIONS,
            **_BROADCASTING,
            **_as(_SETTINGS, try_ann_to_type="annotation_type", ann_to_type="annotation_type"),
        },
    ),
    "jit._logging": Row(
        "torch.jit._logging: counters.",
        _at(
            "engine.torch.jit.logging",
            "AggregationType LoggerBase LockingLogger NoopLogger add_stat_value set_logger time_point",
        ),
    ),
    "jit._passes": Row("torch.jit._passes: passes in Python."),
    "jit._passes._property_propagation": Row(
        "torch.jit._passes._property_propagation: types of inputs from examples.",
        _at("engine.torch.jit.passes", "apply_input_props_using_example"),
    ),
    "jit._monkeytype_config": Row(
        "torch.jit._monkeytype_config: types from observed calls, which need the package MonkeyType.",
        _at(_SETTINGS, "_IS_MONKEYTYPE_INSTALLED"),
    ),
    "jit._pickle": Row(
        "torch.jit._pickle: the functions that pickles of archives name.",
        _at(
            "engine.torch.jit.pickle_names",
            "build_intlist build_tensorlist build_doublelist build_boollist restore_type_tag build_tensor_from_id",
        ),
    ),
    "jit._state": Row(
        "torch.jit._state: what is compiled in this process.",
        _at(
            "engine.torch.jit.compiled_state",
            "_python_cu _clear_class_state enable disable _try_get_jit_cached_function _jit_caching_layer",
        ),
    ),
    "jit._recursive": Row(
        "torch.jit._recursive: modules to compiled modules.",
        {
            **_at(
                "engine.torch.jit.compiled_state",
                "ConcreteTypeStore concrete_type_store create_script_module infer_methods_to_compile wrap_cpp_module",
            )
        },
    ),
    "jit._script": Row(
        "torch.jit._script: compiled objects.",
        {
            **_at(
                _JIT,
                "script ScriptModule ScriptFunction CompilationUnit Attribute interface script_method export "
                "_ScriptProfile",
            ),
            **_as(_JIT, RecursiveScriptModule="ScriptModule"),
            **_as("engine.torch.jit.scripting.script", _get_overloads="get_overloads"),
        },
    ),
    "jit._trace": Row(
        "torch.jit._trace: programs recorded while they run.",
        {
            **_at(_JIT, "trace trace_module is_tracing TracerWarning TracingCheckError _get_trace_graph"),
        },
    ),
    "jit._async": Row("torch.jit._async: futures.", _at(_JIT, "fork wait")),
    "jit._await": Row("torch.jit._await: values that are computed when they are needed.", _PUBLIC_AWAIT),
    "jit._freeze": Row(
        "torch.jit._freeze: modules without attributes.",
        _at(_JIT, "freeze optimize_for_inference run_frozen_optimizations"),
    ),
    "jit._fuser": Row(
        "torch.jit._fuser: settings of plans.",
        _at(_JIT, "fuser last_executed_optimized_graph optimized_execution set_fusion_strategy"),
    ),
    "jit._serialization": Row(
        "torch.jit._serialization: archives.",
        {
            **_at(_JIT, "load save save_jit_module_to_flatbuffer"),
            **_as(_JIT, jit_module_from_flatbuffer="load"),
            **_at(f"{_JIT}.mobile", "get_flatbuffer_module_info"),
        },
    ),
    "jit.quantized": Row(
        "torch.jit.quantized: quantized layers of old programs.",
        {},
        dict.fromkeys(
            "quantize_linear_modules quantize_rnn_cell_modules quantize_rnn_modules QuantizedLinear "
            "QuantizedGRU QuantizedLSTM".split(),
            "quantized layers come from archives: nothing here makes them of others",
        ),
    ),
    "jit._shapes": Row(
        "torch.jit._shapes: shape functions.",
        _at(
            "engine.torch.jit.symbolic_shapes.by_name",
            "adaptive_avg_pool2d addmm bmm broadcast cat conv1d conv2d conv3d dot embedding expand flatten gather "
            "index_select linear matmul max_pool2d mm mv permute select slice squeeze stack t topk transpose unsqueeze "
            "view",
        ),
    ),
    "_awaits": Row("torch._awaits: values that are computed when they are needed.", _as(_JIT, _Await="Await")),
    "_ops": Row(
        "torch._ops: operators by name.",
        {
            **_at("engine.torch.ops", "OpOverload OpOverloadPacket _OpNamespace"),
            "ops": "engine.torch.ops",
        },
    ),
    "_VF": Row("torch._VF: operators as functions.", scope="torch"),
    "_utils": Row(
        "torch._utils: parts of files and of parallel training.",
        {},
        dict.fromkeys(
            "_rebuild_tensor_v2 _rebuild_parameter _rebuild_tensor".split(),
            "torch.load reads pickles through a fixed list of names",
        ),
    ),
    "_six": Row(
        "torch._six: Python 2 and 3.",
        {
            **_at("math", "inf nan"),
            **_as("builtins", string_classes="str", int_classes="int"),
            **_at("collections.abc", "Iterable Sequence"),
            "container_abcs": "collections:abc",
        },
    ),
    "_tensor": Row("torch._tensor: tensors.", _at("engine.torch", "Tensor")),
    "types": Row(
        "torch.types: words for annotations.",
        {
            **_as("builtins", _int="int", _float="float", _bool="bool", _str="str"),
            **_as("typing", Number="Union", _size="Sequence", _TensorOrTensors="Any"),
            **_as(
                "engine.torch",
                Device="device",
                _dtype="dtype",
                _device="device",
                _layout="layout",
                Tensor="Tensor",
                Storage="Tensor",
            ),
        },
    ),
    "functional": Row(
        "torch.functional: functions of torch.",
        _at(
            "engine.torch",
            "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors "
            "cartesian_prod "
            "cdist chain_matmul einsum meshgrid norm split stft istft tensordot unique unique_consecutive "
            "unravel_index",
        ),
    ),
    "nn.common_types": Row(
        "torch.nn.common_types: words for annotations.",
        _as(
            "typing",
            **{f"_size_{kind}_t": "Any" for kind in ("1", "2", "3", "4", "5", "6", "any", "any_opt")},
            **{f"_ratio_{kind}_t": "Any" for kind in ("2", "3", "any")},
        ),
    ),
    "nn.modules.utils": Row(
        "torch.nn.modules.utils: numbers as tuples.",
        _at("engine.torch.nn.tuples", "_ntuple _single _pair _triple _quadruple _reverse_repeat_tuple"),
    ),
    "nn._reduction": Row("torch.nn._reduction: reductions of losses.", _at("engine.torch.nn.tuples", "get_enum")),
    "compiler": Row(
        "torch.compiler: marks for a compiler that leaves functions as they are.",
        _at(
            "engine.torch.compiler_marks",
            "allow_in_graph assume_constant_result cudagraph_mark_step_begin disable is_compiling "
            "is_dynamo_compiling is_exporting reset set_stance",
        )
        | {"compile": "engine.torch:compile"},
    ),
    "_dynamo": Row(
        "torch._dynamo: the compiler behind torch.compile.",
        {
            **_at("engine.torch.compiler_marks", "allow_in_graph disable is_compiling reset"),
        },
        dict.fromkeys("optimize explain export mark_dynamic".split(), _DYNAMO),
    ),
    "_dynamo.utils": Row(
        "torch._dynamo.utils: questions about devices.", _at("engine.torch.compiler_marks", "is_compile_supported")
    ),
    "fx": Row(
        "torch.fx: programs as graphs of Python.",
        _at("engine.torch.compiler_marks", "wrap"),
        dict.fromkeys(
            "Graph GraphModule Interpreter Node Proxy Tracer Transformer symbolic_trace replace_pattern".split(), _FX
        ),
    ),
    "fx.proxy": Row("torch.fx.proxy", {}, dict.fromkeys("Proxy TraceError".split(), _FX)),
    "fx.node": Row("torch.fx.node", {}, dict.fromkeys("Node Argument Target".split(), _FX)),
    "fx.graph": Row("torch.fx.graph", {}, dict.fromkeys("Graph CodeGen".split(), _FX)),
    "fx.graph_module": Row(
        "torch.fx.graph_module",
        {},
        dict.fromkeys("GraphModule _CodeOnlyModule _USER_PRESERVED_ATTRIBUTES_KEY _copy_attr".split(), _FX),
    ),
    "fx.experimental": Row("torch.fx.experimental: what records programs."),
    "fx.experimental.proxy_tensor": Row(
        "torch.fx.experimental.proxy_tensor", _at("engine.torch.compiler_marks", "get_proxy_mode"), {"make_fx": _FX}
    ),
    "fx._compatibility": Row("torch.fx._compatibility", _at("engine.torch.compiler_marks", "compatibility")),
    "classes": Row("torch.classes: classes written in C++, of which there are none."),
    "onnx": Row(
        "torch.onnx: export to ONNX.",
        {
            **_at("engine.torch.compiler_marks", "is_in_onnx_export register_custom_op_symbolic"),
            **_as("engine.torch.version", producer_version="__version__"),
        },
        dict.fromkeys(
            "export dynamo_export OperatorExportTypes TrainingMode _optimize_trace ExportOptions".split(),
            _ONNX,
        ),
    ),
    "onnx.symbolic_helper": Row(
        "torch.onnx.symbolic_helper",
        _at("engine.torch.compiler_marks", "parse_args"),
        dict.fromkeys(["_get_tensor_sizes"], _ONNX),
    ),
    "onnx.symbolic_opset11": Row("torch.onnx.symbolic_opset11: operators as ONNX's, which nobody asks for."),
    "distributed": Row(
        "torch.distributed: several processes, of which there are none.",
        _at(
            "engine.torch.one_process",
            "is_available is_initialized is_mpi_available is_nccl_available is_gloo_available "
            "is_torchelastic_launched get_rank get_world_size",
        ),
        dict.fromkeys(
            (
                "init_process_group all_reduce all_gather all_gather_object barrier broadcast "
                "broadcast_object_list gather reduce scatter "
                "send recv new_group destroy_process_group ReduceOp ProcessGroup DistributedDataParallel group "
                "get_backend"
            ).split(),
            _ONE_PROCESS,
        ),
    ),
    "distributed.nn": Row("torch.distributed.nn", {}, dict.fromkeys("all_reduce all_gather".split(), _ONE_PROCESS)),
    "distributed.rpc": Row("torch.distributed.rpc", _at("engine.torch.one_process", "is_available"), {}),
    "distributed.nn.functional": Row(
        "torch.distributed.nn.functional", {}, dict.fromkeys("all_reduce all_gather".split(), _ONE_PROCESS)
    ),
    "multiprocessing": Row(
        "torch.multiprocessing: Python's processes.",
        {
            **_at(
                "multiprocessing",
                "Process Queue Pool Manager cpu_count get_context set_start_method get_start_method current_process",
            ),
        },
        {
            "spawn": _NOT_SHARED,
            "get_sharing_strategy": _NOT_SHARED,
            "set_sharing_strategy": _NOT_SHARED,
        },
    ),
    "export": Row(
        "torch.export: programs for other machines.",
        {},
        dict.fromkeys("export save load Dim ExportedProgram".split(), _EXPORT),
    ),
    "package": Row(
        "torch.package: packages of Python code.",
        {},
        dict.fromkeys(
            "PackageExporter PackageImporter".split(),
            "code of Python is not run from files; archives (torch.jit.save) are",
        ),
    ),
    "hub": Row(
        "torch.hub: models from the net.",
        {**_at("engine.torch.compiler_marks", "_get_torch_home"), **_at("urllib.parse", "urlparse")},
        dict.fromkeys(
            "load load_state_dict_from_url download_url_to_file get_dir set_dir list help HASH_REGEX "
            "_is_legacy_zip_format _legacy_zip_load".split(),
            _OFFLINE,
        ),
    ),
    "utils.model_zoo": Row(
        "torch.utils.model_zoo: models from the net.",
        {},
        dict.fromkeys("load_url tqdm".split(), _OFFLINE),
    ),
    "utils._pytree": Row(
        "torch.utils._pytree: nested containers.",
        _at("engine.torch.utils.nested", "tree_map tree_map_only tree_flatten tree_leaves tree_unflatten"),
    ),
    "utils.cpp_extension": Row(
        "torch.utils.cpp_extension: code in C++.",
        {},
        dict.fromkeys(
            "load load_inline CUDAExtension CppExtension BuildExtension CUDA_HOME".split(),
            "there is no C++ behind the engine to extend",
        ),
    ),
    "utils.hooks": Row(
        "torch.utils.hooks: hooks that can be taken back.", _at("engine.torch.nn.modules.hooks", "RemovableHandle")
    ),
    "utils.tensorboard": Row(
        "torch.utils.tensorboard", {}, {"SummaryWriter": "the package tensorboardX writes such files"}
    ),
    "utils.mobile_optimizer": Row(
        "torch.utils.mobile_optimizer: programs optimized for phones.",
        _at(
            f"{_SCRIPTING}.mobile_optimizing",
            "optimize_for_mobile generate_mobile_module_lints LintCode MobileOptimizerType",
        ),
    ),
    "utils.mkldnn": Row(
        "torch.utils.mkldnn", {}, {"to_mkldnn": "there is no oneDNN here: the engine's own kernels take its place"}
    ),
    "utils.benchmark": Row(
        "torch.utils.benchmark", {}, {"Timer": "Python's timeit measures, and %profile shows where time goes"}
    ),
    "overrides": Row(
        "torch.overrides: functions that types of others take over.",
        _at(
            "engine.torch.compiler_marks",
            "has_torch_function has_torch_function_unary has_torch_function_variadic is_tensor_like",
        ),
        dict.fromkeys(
            "handle_torch_function TorchFunctionMode get_overridable_functions".split(),
            "functions of tensors are not taken over by other types",
        ),
    ),
    "torch_version": Row("torch.torch_version", _at("engine.torch.version", "TorchVersion __version__")),
    "_subclasses": Row("torch._subclasses: tensors that stand for others."),
    "_subclasses.fake_tensor": Row(
        "torch._subclasses.fake_tensor: tensors without elements.",
        _at("engine.torch.compiler_marks", "is_fake"),
        dict.fromkeys("FakeTensor FakeTensorMode".split(), _EXPORT),
    ),
    "_custom_ops": Row(
        "torch._custom_ops: results without elements.",
        {},
        dict.fromkeys(["get_ctx"], "no operator runs without the elements of its tensors"),
    ),
    "quantization": Row(
        "torch.quantization: quantized models.",
        {},
        dict.fromkeys(
            "quantize_dynamic prepare convert fuse_modules QuantStub DeQuantStub get_default_qconfig "
            "quantize_qat prepare_qat default_qconfig".split(),
            _QUANTIZED,
        ),
    ),
    "ao": Row("torch.ao: quantization."),
    "ao.quantization": Row(
        "torch.ao.quantization: quantized models.",
        {},
        dict.fromkeys(
            "quantize_dynamic prepare convert fuse_modules QuantStub DeQuantStub get_default_qconfig".split(),
            _QUANTIZED,
        ),
    ),
    "sparse": Row(
        "torch.sparse: sparse tensors.",
        {},
        dict.fromkeys("mm sum FloatTensor LongTensor softmax".split(), "tensors are dense here"),
    ),
    "futures": Row(
        "torch.futures: results that arrive later.",
        _at("engine.executor.concurrency.futures", "Future collect_all wait_all"),
    ),
    "storage": Row(
        "torch.storage: the memory of tensors.",
        _as("engine.aten.values.storage", UntypedStorage="Storage", TypedStorage="Storage", _StorageBase="Storage"),
    ),
    "autograd.variable": Row("torch.autograd.variable", _at("engine.torch.autograd", "Variable")),
    "_C._nn": Row("torch._C._nn: operators of layers.", scope="torch"),
    "_C._linalg": Row("torch._C._linalg: operators of linear algebra.", scope="torch"),
    "_C._fft": Row("torch._C._fft: Fourier transforms.", scope="torch"),
    "_C._special": Row("torch._C._special: special functions.", scope="torch"),
    "_C._te": Row(
        "torch._C._te: the fuser of PyTorch.",
        _at("engine.torch.jit.tensorexpr", "TensorExprKernel"),
        dict.fromkeys(
            "ExprHandle LoopNest Tensor Placeholder VarHandle".split(),
            "kernels are made from graphs: there is no fuser to look into",
        ),
    ),
}
"""Name below `torch` -> the module."""


def find(name: str) -> ModuleType | None:
    """The module of that name, made when it is first asked for; None without a row."""
    row = MODULES.get(name.removeprefix("engine.torch."))
    if row is None:
        return None
    if name not in sys.modules:
        made = ModuleType(name, row.about)
        made.__path__ = []  # modules below it are rows, too
        sys.modules[name] = made
        if row.scope:
            made.__dict__["__getattr__"] = partial(_operator, scope=row.scope)
        else:
            refuse_unknown_names(name, row.homes, row.refused)
    return sys.modules[name]


def _operator(name: str, scope: str) -> Any:
    return import_module("engine.torch.namespace.functions").attribute(name, scope)
