"""The tables of names in docs/compatibility.md, made of what is there.

`python -m tests.unit.torch.compatibility_table` prints them.
"""

from collections import defaultdict
from collections.abc import Mapping

from engine import torch
from engine.torch import _C, other_modules

JIT = (
    "Attribute CompilationUnit Error Final Future ONNXTracedModule RecursiveScriptClass RecursiveScriptModule "
    "ScriptFunction ScriptModule ScriptWarning TopLevelTracedModule TracedModule TracerWarning TracingCheckError "
    "_Await _IgnoreContextManager _ScriptProfile _awaitable _awaitable_nowait _awaitable_wait _drop _flatten _fork "
    "_get_trace_graph _hide_source_ranges _isinstance _overload _overload_method _register_decomposition "
    "_script_if_tracing _set_fusion_strategy _unique_state_dict _unwrap_optional _wait annotate enable_onednn_fusion "
    "export export_opnames fork freeze fuser ignore interface is_scripting is_tracing isinstance "
    "jit_module_from_flatbuffer last_executed_optimized_graph load onednn_fusion_enabled optimize_for_inference "
    "optimized_execution run_frozen_optimizations save save_jit_module_to_flatbuffer script script_if_tracing "
    "script_method set_fusion_strategy strict_fusion trace trace_module unused wait"
).split()
"""The names that PyTorch's module has."""


def table() -> str:
    """The names of `torch.jit`, `torch._C` and the modules that are tables, with what becomes of their use."""
    there = [name for name in JIT if hasattr(torch.jit, name)]
    absent = ", ".join(f"`{name}`" for name in JIT if name not in there)
    parts = ["### torch.jit\n", _works(there), f"Absent: {absent}.\n"]
    parts += ["\n### torch._C\n", _section(_C.HOMES, _C.REFUSED), "Any other name is absent: an AttributeError.\n"]
    for path, row in other_modules.MODULES.items():
        if path.startswith(("_C.", "jit.", "_jit")):
            also = " Operators by their names, too." if row.scope else ""
            parts += [f"\n### torch.{path}\n", row.about.partition(": ")[2].capitalize() + also + "\n" if also else ""]
            parts.append(_section(row.homes, row.refused))
    return "\n".join(part for part in parts if part).replace("\n\n\n", "\n\n")


def _section(homes: Mapping[str, str], refused: Mapping[str, str]) -> str:
    by_words = defaultdict(list)
    for name, words in refused.items():
        by_words[words].append(f"`{name}`")
    rows = [f"| {', '.join(sorted(names))} | {words} |" for words, names in by_words.items()]
    head = ["", "| refuses | with the words |", "| --- | --- |"] if rows else []
    return "\n".join([*([_works(homes)] if homes else []), *head, *rows, ""])


def _works(names: object) -> str:
    return "Works: " + ", ".join(f"`{name}`" for name in sorted(names)) + ".\n"  # type: ignore[call-overload]


if __name__ == "__main__":
    print(table(), end="")
