"""Operators that are not in the table: which kind each is of, and why that kind is not here.

In: qualified names.  Out: the reason, and the hint for errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_KINDS: Final = (
    (r"^(cuda|streams|mkl)::|cudnn|miopen|cuda|cusparse|cslt|cublas|cufft|flash|efficient_att|triton|nnpack|cutlass|_symm_mem",
     "it belongs to a library for one kind of processor, and PyTorch calls it for others"),
    (r"mkldnn|onednn|MKLDNN|_mkl|mkl_", "it works on tensors in the layout of oneDNN, which there are not here"),
    (r"_mps|mps_|vulkan|metal|_xla|xnnpack|^prepacked", "it works on a device that is not supported"),
    (r"sparse|coalesce|csr|csc|bsr|bsc|hspmm|smm|_nnz|_indices|::indices|_values|::values|crow|ccol|col_indices"
     r"|row_indices|_dim[IV]|dense_dim|to_dense|_spdiags|_spsolve|_to_dense", "no tensor here is sparse"),
    (r"nested|jagged|to_padded", "no tensor here is nested"),
    (r"rename|align_|refine_names|_names", "no dimension here has a name"),
    (r"_?th[n_]+|^aten::_?(legacy|native)_", "it was for the use of PyTorch's own functions, whose operators are here"),
    (r"backward|_grad$|_grad_|_jvp|_double|_vjp",
     "it is a step of a gradient, which the engine computes by formulas of its own"),
    (r"_foreach_|_fused_ada|_fused_sgd|_fused_adam", "optimizers call it from Python, and programs do not"),
    (r"^_?quantized|fbgemm|quantize|observ|qparams|int4pack|int8pack|_dyn_quant|_wrapped_",
     "it works on a packed form of quantized weights that is not supported"),
    (r"_copy$", "it is the copying form of a view, which functionalisation makes"),
    (r"_sym|sym_|guard|Guard|BailOut|Bailout|profile|Group|Subgraph|Fusion|Autograd|TypeCheck|StaticRuntime|MMTree"
     r"|MMBatch|Diff|Fallback|FusedConcat|ChunkSizes|ReductionSizes|BroadcastSizes|SumToSize",
     "a pass of PyTorch puts it into graphs, and no file has it"),
    (r"^static_runtime::", "a pass of PyTorch puts it into graphs, and no file has it"),
    (r"^_?test|_test|test_|MakeTest|foobar|_print|rand[678]|creates_alias|returns_wildcard|writes|add_optional|aten::op$|^prim::is_none",
     "it is there for PyTorch's own tests"),
    (r"rpc_|owner|to_here|local_value|get_gradients|^_?c10d|^symm_mem::|^_dtensor::|^fsdp::|^quantization::",
     "it is for work on several machines or processors"),
    (r"^(\w*prims|inductor|_native|export|debug_mode_ops|flex_lib|quantized_decomposed)::",
     "compilers of Python's calls make it (torch.compile, torch.export), and programs do not"),
    (r"^onnx", "the exporter to ONNX makes it"),
    (r"^(_caffe2|fb)::", "it belongs to another framework that PyTorch once carried along"),
    (r"^prim::", "it is written as syntax or comes from a pass"),
    (r"_functional|_assert|functorch|batch_dim|_lazy|_efficientzero|_make_dual|_unpack_dual|_fw_primal|dep_token|functional",
     "a transformation of PyTorch's own makes it"),
    (r"_amp_|_sobol_|_philox_|multinomial_alias|_pack_sequence|_ncf_|_saturate|_rowwise_prune|_pin_memory|pin_memory|pinned"
     r"|record_stream|_copy_from|is_distributed|set_data|::data$|storage|RoiPooling",
     "Python calls it beside programs"),
    (r"^aten::special_", "the function is not written yet"),
    (r"batch_norm_|_native_batch_norm|_batch_norm", "synchronised and split batch norm is not supported"),
    (r"_scaled_(dot|mm|grouped)|scaled_dot_product|grouped_mm|_int_mm|mixed_dtypes|_transformer|_triton|_fused_sdp"
     r"|multi_head|decoder_only|rms_norm|_bias_rescale", "it is a fused form that other operators call"),
    (r"_(helper|impl|forward|kernel|check_errors|out)$|_forward_|_helper_|linalg__|^aten::_linalg|^aten::_fft|^aten::_",
     "it is for the use of PyTorch's own functions, whose operators are here"),
)  # fmt: skip
"""The first that fits tells."""
NOT_YET: Final = "it is not written yet"
_RULES: Final = tuple((re.compile(pattern), reason) for pattern, reason in _KINDS)
_OF_PYTORCH: Final = frozenset(
    "aten prim quantized _quantized quantized_decomposed sparse mkldnn onednn mkldnn_prepacked prepacked metal_prepack "
    "profiler _caffe2 fb cuda streams mkl onnx onnx_symbolic quantization static_runtime c10d c10d_functional "
    "_c10d_functional _c10d_functional_autograd symm_mem _dtensor fsdp prims nvprims inductor_prims rngprims "
    "debugprims debug_mode_ops export flex_lib inductor _inductor_test _native _test".split()
)
"""The namespaces of the operators that PyTorch itself registers; `cuda` is one of builds for GPUs."""


def reason_for(name: str) -> str:
    """The reason why an operator of PyTorch is not here; "" for those of extensions."""
    if name.partition("::")[0] not in _OF_PYTORCH:
        return ""
    return next((reason for pattern, reason in _RULES if pattern.search(name)), NOT_YET)


def where_missing_ones_are(names: Iterable[str]) -> str:
    """The hint for unknown operators of these qualified names."""
    names = list(names)
    spaces = {name.partition("::")[0].partition("_")[0] for name in names}
    gpu = next((back_end for space, back_end in _OF_PHONES.items() if space in spaces), "")
    if spaces == {""} and all(name.startswith("__torch__") for name in names):
        origin = "the archive does not hold its code"
    elif gpu:
        origin = (
            f"it runs on a phone's GPU, for which the program was optimized (backend='{gpu}'): optimize it for the CPU"
        )
    elif {name.partition("::")[0] for name in names} <= _OF_PYTORCH:
        why = next((reason for reason in map(reason_for, names) if reason != NOT_YET), "")
        origin = f"another version of PyTorch has it, and {why}" if why else "another version of PyTorch has it"
    else:
        given = "can be given in Python: torch.library, `tsrepl --operators OPS.py`"
        origin = f"it comes from an extension of PyTorch, and {given}"
    return f"{origin}; `tsrepl ops FILE` lists every operator that an archive lacks"


_OF_PHONES: Final = {"vulkan": "Vulkan", "metal": "Metal"}
"""The beginning of a namespace of operators -> the back end that has them."""
