"""Files as programs: what the command line runs and shows.

In: the path of an archive or of TorchScript text, inputs as they were typed.  Out: replies, as they come.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator, Iterator, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from engine.aten.dispatch.grad_mode import set_grad_enabled
from engine.aten.values.ivalue import Object
from engine.aten.values.submodules import every_place
from engine.executor.calls.call import call_function
from engine.ir.unit import Function
from engine.lang.counts import counted
from engine.lang.deferred import deferred
from engine.lang.errors import (
    ArchiveError,
    ArgumentError,
    EngineError,
    ParseError,
    UnsupportedTensorError,
    did_you_mean,
)
from engine.lang.records import dataclass
from engine.lang.schema import Argument
from engine.lang.types import NONE, Type
from tsrepl.session.commands import MAIN, run_text
from tsrepl.session.failures import CommandLineError, error_replies, guarded
from tsrepl.session.files import hints_for_devices, name_from_path, open_archive, read_text
from tsrepl.session.inspection import code_reply, graph_reply, signature
from tsrepl.session.modules import module_node
from tsrepl.session.replies import (
    DefinitionReply,
    ErrorReply,
    ModuleReply,
    Reply,
    ReportReply,
    SchemaReply,
    TextReply,
    TreeReply,
)
from tsrepl.session.trees import tree_text

if TYPE_CHECKING:  # a text that runs has no part in these
    from engine.serialize.identify import identify as identifying
    from engine.serialize.inspect import survey as surveying
    from tsrepl.session import archives, arrays
else:
    identifying = deferred("engine.serialize.identify.identify")
    surveying = deferred("engine.serialize.inspect.survey")
    archives, arrays = deferred("tsrepl.session.archives"), deferred("tsrepl.session.arrays")
from tsrepl.session.values import summary
from tsrepl.session.workspace import Workspace

FORWARD: Final = "forward"
TEXT_ENDINGS: Final = (".py", ".ts", ".txt")
_ANYTHING: Final = ("text", "empty", "unknown")
_NAMED: Final = re.compile(r"([^\W\d]\w*)\s*=(?!=)\s*(.*)", re.S)


@dataclass(frozen=True, slots=True)
class LoadedProgram:
    """A file that was opened: a module, or a workspace with the functions of a text file."""

    path: str
    workspace: Workspace
    module: Object | None = None
    seen: surveying.Survey | None = None
    """Summary of an archive that is shown and not run."""

    def every_function(self) -> list[Function]:
        """The functions and methods of the whole program."""
        return list(self.functions().values()) if self.seen is None else self.seen.functions

    def functions(self) -> dict[str, Function]:
        """The functions that can be called, by name."""
        if self.module is None:
            return {name: each for name, each in self.workspace.functions().items() if "." not in name}
        methods = self.module.type.methods
        return {name: method for name, method in methods.items() if isinstance(method, Function)}

    def find(self, name: str) -> Function:
        """The function or method.  Raises CommandLineError, with the nearest name."""
        return self.locate(name)[1]

    def locate(self, name: str) -> tuple[Object | None, Function]:
        """The method with the module that has it (`layer.forward`, `layer`), or a function by its qualified name.

        Raises CommandLineError, with the nearest name.
        """
        known = self.functions()
        if name in known:
            return self.module, known[name]
        inside = self._methods_inside() if self.module is not None else {}
        for each in (name, f"{name}.{FORWARD}"):
            if each in inside:
                return inside[each]
        function = next((each for each in self.every_function() if each.qualname == name), None)
        if function is not None and not function.is_method:
            return None, function
        shown = f"there is {', '.join(known)}" + (
            "; layer.forward names one inside" if len(inside) > len(known) else ""
        )
        places = [each.removesuffix(f".{FORWARD}") for each in inside]
        hints = did_you_mean(name, [*known, *inside, *places]) or ((shown,) if known else ())
        raise CommandLineError(
            f"'{self.path}' has no {'function' if self.module is None else 'method'} '{name}'", hints=hints
        )

    def _methods_inside(self) -> dict[str, tuple[Object, Function]]:
        """Every method of every module, by its dotted path."""
        assert self.module is not None
        return {
            f"{path}.{name}" if path else name: (module, method)
            for path, module in every_place(self.module)
            for name, method in module.type.methods.items()
            if isinstance(method, Function)
        }


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """A call of a file's program: a function, or a method with the module that has it first among the arguments."""

    program: LoadedProgram
    function: Function
    args: list[Any]
    kwargs: dict[str, Any]

    def make(self, grad: bool | None) -> Any:
        """The result of the call; `grad` says whether gradients are recorded.  Raises ArgumentError, ExecutionError."""
        try:
            with recording(self.program.path, grad):
                return call_function(self.function, self.args, self.kwargs)
        except EngineError as error:
            error.hints = hints_for_devices(error, self.program.path)
            raise


def run_program(
    path: str, method: str | None, inputs: Sequence[str], output: str | None, grad: bool | None = None
) -> Iterator[Reply]:
    """Run a file's method or function, as `tsrepl run` does; `grad` says that gradients are recorded."""
    return guarded(_run_program(path, method, inputs, output, grad))


def recording(path: str, grad: bool | None) -> set_grad_enabled:
    """A block in which gradients are recorded, or not; without a word about that, those of text files are."""
    return set_grad_enabled(is_text(path) if grad is None else grad)


def show_program(path: str, view: str | None, method: str | None) -> Iterator[Reply]:
    """The contents of a file, as `tsrepl show` prints them."""
    return guarded(_show_program(path, view or "", method))


# -- running


def _run_program(
    path: str, method: str | None, inputs: Sequence[str], output: str | None, grad: bool | None
) -> Iterator[Reply]:
    if output is not None:
        arrays.check_writable(output)
    call = yield from call_of(path, method, inputs)
    if call is None:
        return
    value = call.make(grad)
    if output is None:
        yield call.program.workspace.show(value, result_type(call.function))
        return
    arrays.write_arrays(output, value)
    yield TextReply(f"wrote {output} ({counted(os.path.getsize(output), 'byte')})", "done")


def call_of(path: str, method: str | None, inputs: Sequence[str]) -> Generator[Reply, None, ProgramCall | None]:
    """The call of a file's method or function with inputs as they were typed; None where there is none to be made.

    The replies are those of a text file's entries, and notes about an archive.  Raises EngineError, OSError.
    """
    workspace = Workspace()
    if is_text(path):
        failed = False
        for reply in run_text(workspace, read_text(path), path):
            failed = failed or isinstance(reply, ErrorReply)
            if not isinstance(reply, DefinitionReply):
                yield reply
        if failed:
            return None
        program = LoadedProgram(path, workspace)
        if method is None and MAIN not in program.functions():
            yield from _defined(program, inputs)
            return None
    else:
        module, note = open_archive(path)
        yield from note
        program = LoadedProgram(path, workspace, module)
    owner, function = program.locate(method or (MAIN if program.module is None else FORWARD))
    args, kwargs = read_inputs(inputs, function)
    _check_given(function, function.schema.arguments[owner is not None :], args, kwargs)
    return ProgramCall(program, function, [*([] if owner is None else [owner]), *args], kwargs)


def _check_given(function: Function, takes: Sequence[Argument], args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Raises ArgumentError where inputs are missing or are no arguments, and says how they are given."""
    known = [each.name for each in takes]
    strange = next((name for name in kwargs if name not in known), None)
    if strange is not None:
        told = f"it takes {', '.join(known)}" if known else "it takes none"
        raise ArgumentError(f"{function.name} has no argument '{strange}'", hints=(*did_you_mean(strange, known), told))
    missing = [each for each in takes[len(args) :] if not each.has_default and each.name not in kwargs]
    if missing:
        names = ", ".join(f"{each.name} ({each.type.annotation_str})" for each in missing)
        raise ArgumentError(
            f"{function.name} also needs {names}" if args or kwargs else f"{function.name} needs {names}",
            hints=(f"add --input {missing[0].name}=..., a file (x.npy) or an expression ('randn(2, 3)', 4)",),
        )


def _defined(program: LoadedProgram, inputs: Sequence[str]) -> Iterator[Reply]:
    """The definitions of a text file without `main`, which takes no inputs."""
    known = program.functions()
    if inputs:
        raise CommandLineError(
            f"'{program.path}' has no function '{MAIN}' to take inputs", hints=("name one with --method",)
        )
    if known:
        yield SchemaReply(program.path, tuple(signature(function) for function in known.values()))


def read_inputs(inputs: Sequence[str], function: Function) -> tuple[list[Any], dict[str, Any]]:
    """The arguments that inputs on the command line stand for: those without a name, and those with.

    Raises CommandLineError for what is neither a file nor an expression, and what reading or evaluating it raises.
    """
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for text in inputs:
        name, value = _named_input(text)
        if arrays.is_array_file(value):
            read = arrays.read_arrays(value)
            if name or list(read) == [""]:
                found: dict[str, Any] = {name: _only(read, value)}
            else:
                found = {key: each for key, each in read.items() if function.schema.index_of(key) is not None} or read
        else:
            found = {name: _evaluate(value, name)}
        args += [found.pop("")] if "" in found else []
        kwargs.update(found)
    return args, kwargs


def _named_input(text: str) -> tuple[str, str]:
    """`x=randn(2)` is ("x", "randn(2)"); an input without a name has the name ""."""
    match = _NAMED.match(text)
    return (match[1], match[2]) if match else ("", text)


def _only(read: dict[str, Any], path: str) -> Any:
    if len(read) != 1:
        raise CommandLineError(
            f"'{path}' holds {len(read)} arrays: {', '.join(read)}", hints=("give it without a name",)
        )
    return next(iter(read.values()))


def _evaluate(text: str, name: str) -> Any:
    workspace = Workspace()
    try:
        return workspace.evaluate(text, f"<input {name}>" if name else "<input>")[0]
    except ParseError as error:
        hints = error.hints or ("an input is a .npy or .npz file, or a TorchScript expression, or name=expression",)
        raise ParseError(error.message, error.range, hints=hints) from None


def result_type(function: Function) -> Type:
    """The function's return type."""
    return function.schema.returns[0].type if function.schema.returns else NONE


# -- showing


def _show_program(path: str, view: str, method: str | None) -> Iterator[Reply]:
    kind = None if is_text(path) else identifying.identify(path)
    if view == "bytecode":
        yield from archives.show_bytecode(path, method)
        return
    if kind is not None and kind.has_weights and view:
        raise CommandLineError(
            f"'{path}' holds no program: it is {kind.title}", hints=(f"tsrepl show {path} lists its tensors",)
        )
    if kind is not None and not kind.is_program:
        yield from archives.show_weights(path)
        return
    try:
        program = _open(path)
    except UnsupportedTensorError as reason:
        if view:
            raise
        yield from archives.show_tensors(path, reason)
        return
    except ArchiveError:
        if view or kind is None or kind.kind != "mobile-bytecode-only":
            raise
        yield from archives.show_bytecode(
            path
        )  # the instructions alone, where the module that they work on is not there
        return
    every = program.functions() if method is None else {method: program.find(method)}
    errors = _errors_in(every)
    if view == "sources":
        yield from archives.sources(path, list(every.values()) if method else program.every_function())
        return
    shown = {name: each for name, each in every.items() if name not in errors or _is_told(each, view)}
    yield from _shown(program, view, shown)
    for error in errors.values():
        yield from [_not_compiled(error)] if shown else error_replies(error)


def _errors_in(functions: dict[str, Function]) -> dict[str, EngineError]:
    """The errors of the functions that do not compile."""
    errors = {}
    for name, function in functions.items():
        try:
            function.ensure_defined()
        except EngineError as error:
            errors[name] = error
    return errors


def _is_told(function: Function, view: str) -> bool:
    """True for a function of an archive, whose text tells in that view what its graph cannot."""
    return function.written is not None and view in ("", "code", "tree")


def _not_compiled(error: EngineError) -> TextReply:
    """The first line of the error, which names the function."""
    return TextReply(error.message.partition("\n")[0].rstrip(":."), "warning")


def _shown(program: LoadedProgram, view: str, known: dict[str, Function]) -> Iterator[Reply]:
    if not view:
        yield from _overview(program, known)
    elif view == "constants":
        yield from _constants(program, known)
    elif view == "tree":
        yield from _trees(program, known)
    elif not known:
        yield TextReply("no code: the module has no methods of its own" if program.module else "no functions")
    else:
        several = len(known) > 1
        for name, function in known.items():
            if several and view == "graph":
                yield TextReply(f"# {name}")
            yield code_reply(name, function) if view == "code" else graph_reply(name, function)


def _open(path: str) -> LoadedProgram:
    if not is_text(path):
        seen = surveying.survey(path)
        return LoadedProgram(path, Workspace(), seen.module, seen)
    workspace = Workspace()
    workspace.define_all(read_text(path), path)
    return LoadedProgram(path, workspace)


def _overview(program: LoadedProgram, known: dict[str, Function]) -> Iterator[Reply]:
    if program.module is not None and program.seen is not None:
        name = name_from_path(program.path)
        yield archives.file_reply(program.seen.identity, advice=False)
        yield ModuleReply(name, module_node(name, program.module), more=f"tsrepl show --tree {quote(program.path)}")
    yield SchemaReply(program.path, tuple(signature(function) for function in known.values()))
    if program.seen is None:
        return
    rewrites, filled = program.seen.rewrites(), program.seen.filled
    notes = [archives.rewrites_section(rewrites)] if rewrites else []
    notes += [archives.filled_section(filled)] if filled else []
    if notes:
        yield ReportReply("", tuple(notes))


def _trees(program: LoadedProgram, known: dict[str, Function]) -> Iterator[Reply]:
    if program.module is not None:
        name = name_from_path(program.path)
        yield ModuleReply(name, module_node(name, program.module), sys.maxsize)
        return
    for name in known:
        yield TreeReply(name, tree_text(program.workspace.tree_of(name)))


def _constants(program: LoadedProgram, known: dict[str, Function]) -> Iterator[Reply]:
    rows = [
        f"{name}: CONSTANTS.{key} = {text}"
        for name, function in known.items()
        for key, text in code_reply(name, function).constants
    ]
    if program.module is not None:
        rows += _class_constants(program.module, name_from_path(program.path))
    yield TextReply("\n".join(rows) if rows else "no constants")


def _class_constants(module: Object, path: str) -> Iterator[str]:
    """The constants of the module's class and of those inside it."""
    for place, each in every_place(module, path):
        yield from (f"{place}.{name} = {summary(value)}" for name, value in each.type.constants.items())


def is_text(path: str) -> bool:
    """True if the file holds the text of a program; its name decides only where the contents can be anything."""
    try:
        kind = identifying.identify(path).kind
    except ArchiveError:
        kind = "unknown"
    return kind == "source" or (kind in _ANYTHING and path.endswith(TEXT_ENDINGS))
