"""The commands: one row each.

In: a command line, `%name argument`.  Out: replies.  A row says what the command is called, how it is written, what it
does and what its argument may be; help, completion and suggestions all read the rows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import chain, groupby
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.aten.dispatch.grad_mode import no_grad
from engine.lang.counts import duration
from engine.lang.deferred import deferred
from engine.lang.errors import did_you_mean
from engine.passes.pipeline import names as pass_names
from tsrepl.session.entries import CELL, COMMAND, HELP, LEAVE, Entry, split_entries
from tsrepl.session.failures import INTERRUPTED, UsageError, error_replies
from tsrepl.session.replies import (
    DefinitionReply,
    ErrorReply,
    HelpReply,
    HelpTopic,
    LeaveReply,
    Reply,
    SystemReply,
    TextReply,
)
from tsrepl.session.workspace import Workspace

if TYPE_CHECKING:
    from tsrepl.session import documentation, files
else:
    files, documentation = deferred("tsrepl.session.files"), deferred("tsrepl.session.documentation")

TOPIC: Final = "settings"
"""The word for which help tells of the reader's settings."""
MAIN: Final = "main"
"""The function of a file that runs with it."""

Run = Callable[[Workspace, str], Iterable[Reply]]


class Command(NamedTuple):
    """`goal` is the heading that help lists it under.

    `run` names the function of this folder that answers, as `module.function`; it is loaded when it is first asked.
    `argument` says what completes it, word by word: function, expression, documented, operator, pass, path, place,
    name, command, number, variable, or nothing.
    """

    name: str
    goal: str
    usage: str
    summary: str
    argument: str
    run: str
    details: str = ""
    examples: tuple[str, ...] = ()

    @property
    def runs_calls(self) -> bool:
        """True if it runs a call from its beginning to its end."""
        return self.name != "debug" and bool({"expression", "function", "place"} & {*self.argument.split()})

    @property
    def function(self) -> Run:
        """The function that answers."""
        module, _, name = self.run.partition(".")
        function: Run = getattr(import_module(f"{__package__}.{module}"), name)
        return function


def show_help(workspace: Workspace, argument: str) -> Iterable[Reply]:
    if not argument:
        return [_overview(workspace)]
    if argument == TOPIC:
        return [documentation.settings_help()]
    command = find_command(argument.removeprefix(COMMAND))
    details = (command.details,) if command.details else ()
    takes_passes = "pass" in command.argument.split()
    topics = tuple(HelpTopic(name, documentation.pass_summary(name)) for name in pass_names()) if takes_passes else ()
    return [HelpReply(command.usage, (command.summary, *details), topics, command.examples)]


def run_file(workspace: Workspace, argument: str) -> Iterable[Reply]:
    paths = files.words_of(argument)
    if len(paths) != 1:
        raise UsageError("%run wants one file", hints=("write %run program.py",))
    path = os.path.expanduser(paths[0])
    failed = has_main = False
    for reply in run_text(workspace, files.read_text(path), path):
        failed = failed or isinstance(reply, ErrorReply)
        has_main = has_main or (isinstance(reply, DefinitionReply) and reply.name == MAIN)
        yield reply
    if has_main and not failed:
        yield from _run_main(workspace, path)


def _run_main(workspace: Workspace, path: str) -> Iterator[Reply]:
    """Call the function `main` of a file, if it can be called without arguments."""
    if all(argument.has_default for argument in workspace.target(MAIN).schema.arguments):
        yield from run_text(workspace, f"{MAIN}()", path)
    else:
        yield TextReply(f"{MAIN} takes arguments, so it has not been called")


def more(workspace: Workspace, argument: str) -> Iterable[Reply]:
    """`%more`: the last error again, with all that it says."""
    if workspace.error is None:
        raise UsageError("there has been no error")
    yield replace(workspace.error, is_whole=True)


def _overview(workspace: Workspace) -> HelpReply:
    module = next((binding.name for binding in reversed(workspace.bindings()) if binding.kind == "module"), "")
    return HelpReply(
        "Type TorchScript, and it is compiled, typed and run at once",
        (
            "Expressions show their value and keep it as _. A def stays for later entries. A blank line ends a block.",
            "Where an operator stands without 'torch.' it is found all the same: randn(2, 3).",
            f"%help {TOPIC} tells of config.toml, in which keys of vi, colours and the pager are chosen.",
        ),
        tuple(
            HelpTopic(each.usage, each.summary, each.goal) for goal in _GOALS for each in COMMANDS if each.goal == goal
        ),
        () if module else _EXAMPLES,
        _start_of(module) if module else (),
    )


_EXAMPLES: Final = (
    "x = torch.randn(2, 3)",
    "def f(a, b):",
    "    return torch.tanh(a + b)",
    "",
    "f(x, x)",
    "%graph f",
    "%help trace",
)


def _start_of(module: str) -> tuple[HelpTopic, ...]:
    """Entries for someone who has just loaded a module."""
    rows = (
        (module, "its modules and parameters"),
        (f"{module}?", "also what it takes"),
        (f"%code {module}", "its program"),
        (f"%tap {module} * -- {module}(x)", "what comes out of each part during a call"),
        (f"%explain {module}(x)", "what was made of it to run it, and what that cost"),
        (f"%debug {module}(x)", "the call step by step, forward and back"),
    )
    return tuple(HelpTopic(entry, meaning, f"Start here, with {module}") for entry, meaning in rows)


_LOOK: Final = "Look into functions, modules and operators"
_WATCH: Final = "Watch and change what runs"
_FILE: Final = "Read and write files"
_HERE: Final = "Around the session"
_GOALS: Final = (_LOOK, _WATCH, _FILE, _HERE)
_TARGET = "f is a function you defined, a method like m.forward, a module (its forward), or any expression."

_KEPT = (
    "With a name alone, what earlier calls of f left is shown, and nothing is run. With --no-grad no gradients are "
    "recorded in the call, as within torch.no_grad(); every command that runs a call takes it."
)
_PLANS = (
    "Hits are calls that found the plan, misses calls of its groups that no kernel took, failures checks of it that "
    "failed, so that the interpreter went on. "
)

COMMANDS: Final[tuple[Command, ...]] = (
    Command("graph", _LOOK, "%graph [--no-lines] [--full] f", "the graph that f was compiled to", "function",
            "inspection.graph",
            _TARGET + " Each node has its place in the author's file beside it, but with --no-lines; with --full "
            "classes have their full names.",
            ("%graph f", "%graph --no-lines --full f", "%graph m.forward", "%graph torch.ones(2) + 1")),
    Command("modules", _LOOK, "%modules m [depth]", "the modules inside a module, with parameters and sizes", "name",
            "overview.modules", "Without a depth, as deep as a page has room for.", ("%modules m", "%modules m 3")),
    Command("passes", _LOOK, "%passes f [pass ...]", "what each optimization pass changes in the graph",
            "function pass", "passing.passes",
            _TARGET + " Of what has run these are the passes that made the plan; of expressions, whose last call is "
            "not made, those that make it. "
            "Name passes to run these only, in that order, on the graph as it was compiled; %doc cse tells more about "
            "one of them.",
            ("%passes f", "%passes f(x, x)", "%passes f constant_propagation dce")),
    Command("bisect", _WATCH, "%bisect expression [pass ...]",
            "which rewrite of which pass changes what an expression gives",
            "expression", "observing.bisect", "Names of passes at the end stand for the pipeline.",
            ("%bisect f(1, 2)", "%bisect f(1, 2) inline dce")),
    Command("code", _LOOK, "%code f", "Python text printed from the graph", "function", "inspection.code", _TARGET,
            ("%code f",)),
    Command("tree", _LOOK, "%tree f", "the syntax tree", "function", "inspection.tree", _TARGET, ("%tree f",
            "%tree x + 1")),
    Command("instructions", _LOOK, "%instructions [--no-lines] f",
            "what the interpreter runs: registers, operations, moves", "function",
            "inspection.instructions", _TARGET, ("%instructions f",)),
    Command("kernels", _LOOK, "%kernels f(x) [--target arch] [form]",
            "run, and show the kernels that ran, and why the rest has none", "expression", "kernels.kernels",
            "The form of the kernels' texts is kernel (with all that it calls), before or after (LLVM's passes), or "
            "assembly. With a GPU's architecture it shows what a GPU would run, as ptx, kernel or sass; no GPU is "
            "needed. " + _KEPT,
            ("%kernels f(x, x)", "%kernels f(x, x) assembly", "%kernels f(x, x) --target sm_90")),
    Command("explain", _LOOK, "%explain f(x)", "the story of a call: its plans, and what they cost",
            "expression", "explaining.story", _KEPT, ("%explain f(x, x)", "%explain f")),
    Command("plan", _LOOK, "%plan f(x)", "a row for each plan: for what, why it was made, guards, kernels, hits, cost",
            "expression", "explaining.plans", _PLANS + _KEPT, ("%plan f(x, x)", "%plan f")),
    Command("profile", _WATCH, "%profile [--types] f(x)",
            "where time and memory go: by module, by line, by node; or what types values had",
            "expression", "costs.profile",
            "The plan runs as calls run it, kernels included, a few times, and the fastest counts; one more run tells "
            "the memory. With --types it shows what each value was: dtype, sizes, and which of them vary; with a name "
            "alone, so of earlier calls, and nothing is run.",
            ("%profile f(x, x)", "%profile --types f(x, x)", "%profile f")),
    Command("guards", _LOOK, "%guards f(x)", "which values plans check, why, and which checks failed",
            "expression", "learning.guards", _KEPT, ("%guards f(x, x)", "%guards f")),
    Command("autodiff", _LOOK, "%autodiff f(x)", "what is differentiated together, and why the rest is not",
            "expression", "explaining.autodiff", _KEPT, ("%autodiff f(x, x)", "%autodiff f")),
    Command("debug", _WATCH, "%debug [--plan] [f(x)]", "run under the debugger, which goes forward and back",
            "expression", "debugging.debug",
            "Without an expression, the last entry that failed runs again, up to its error. At the debugger's prompt, "
            "help lists its commands. With --plan the graphs of plans run, guards and all; break guard, then run, "
            "stops at a check that fails. In a notebook, the call waits while cells run: %debug n and the like go on "
            "with it, %debug p x shows a value there, %debug q leaves it.",
            ("%debug f(x, x)", "%debug", "%debug --plan f(x, x)")),
    Command("trace", _WATCH, "%trace [option ...] f(x)",
            "run, and show every instruction with the values it read and wrote", "expression", "observing.trace",
            "Options choose instructions: --value h (that read or compute a variable), --op relu, --line 12, "
            "--module layer1, --last 50, --first-nan (up to where NaN appears). With --plan the graphs of plans run, "
            "once the call has run as it does otherwise, and it is told which kernels stand for what. "
            "--no-lines leaves out the places, --all shows what only moves values, too: Load, Constant and Drop.",
            ("%trace f(x, x)", "%trace --value h f(x, x)", "%trace --last 20 f(x, x)", "%trace --plan f(x, x)")),
    Command("tap", _WATCH, "%tap m pattern ... -- call", "what comes out of the parts of a module during a call",
            "place", "tapping.tap",
            "Patterns are paths of submodules (encoder.*), their variables (decoder:h) or lines of a file "
            "(model.py:42); * and ? match as in file names.",
            ("%tap m layer* -- m(x)", "%tap m encoder.* decoder:h -- m(x)", "%tap m model.py:42 -- m(x)")),
    Command("run_until", _WATCH, "%run_until m pattern -- call",
            "run a call up to a place in a module, and show what is there",
            "place", "tapping.run_until", "Places are written as for %tap; what comes after the place does not run.",
            ("%run_until m encoder -- m(x)",)),
    Command("cut", _WATCH, "%cut m [input ...] -> output ... [as name]",
            "cut a part out of a module, to be called and saved",
            "place", "tapping.cut",
            "Places are submodules (encoder) or variables (decoder:h, :x). Without inputs, the part takes the "
            "arguments that it needs.",
            ("%cut m -> encoder as front", "%cut m encoder -> decoder as tail")),
    Command("schema", _LOOK, "%schema f", "the signature of a function, method or operator", "function",
            "inspection.schema",
            "Operators are written aten::add, torch.add or add.", ("%schema f", "%schema torch.add")),
    Command("ops", _LOOK, "%ops [pattern]", "the operators whose name contains the pattern", "operator", "overview.ops",
            "* and ? match as in file names.", ("%ops relu", "%ops *_pool?d")),
    Command("time", _WATCH, "%time expression", "how long an expression takes", "expression", "observing.time", "",
            ("%time f(x, x)",)),
    Command("save", _FILE, "%save name path", "write a function or module to an archive, a tensor to .npy", "name path",
            "files.save", "PyTorch loads the archive with torch.jit.load.  What lies in a module is named by its path.",
            ("%save f f.pt", "%save m.encoder encoder.pt", "%save m phone.ptl", "%save x x.npy")),
    Command("load", _FILE, "%load path [as name]", "read an archive, weights, a .npy or a .npz", "path",
            "files.load", "The name is made from the file's name unless you give one.",
            ("%load model.pt", "%load model.pt as m")),
    Command("identify", _FILE, "%identify path", "what a file is, and what to do with it", "path", "looking.identify",
            "", ("%identify model.pt",)),
    Command("check", _FILE, "%check path", "what an archive's program can do, and what is suspicious about it", "path",
            "looking.check", "Nothing of it is run.", ("%check model.pt",)),
    Command("diff", _FILE, "%diff old new", "what differs between two model files", "path", "looking.diff",
            "Code, attributes, and weights by tensor.", ("%diff old.pt new.pt",)),
    Command("run", _FILE, "%run file", "run a file of TorchScript entries here, then its function main", "path",
            "commands.run_file",
            "A main that needs arguments is defined and not called.",
            ("%run program.py",)),
    Command("doc", _LOOK, "%doc name", "signature and documentation of a name; name? and help(name) are short for it",
            "documented", "documentation.doc",
            "The name is that of a function, method, module, variable, operator, layer, pass or kind of node.",
            ("%doc f", "f?", "?f", "help(torch.relu)", "%doc nn.Linear", "%doc cse", "%doc prim::Loop")),
    Command("edit", _HERE, "%edit [f]", "edit the last entry, or a definition, in your editor, and run what comes back",
            "function", "surroundings.edit",
            "The editor is $VISUAL or $EDITOR. If it ends with an error (as vi does after :cq), the text stands at the "
            "prompt unchanged. Without an earlier entry it begins empty.",
            ("%edit", "%edit f")),
    Command("more", _HERE, "%more", "the last error with all it says, as all overloads that do not fit", "",
            "commands.more"),
    Command("history", _HERE, "%history [n]", "the last entries", "number", "surroundings.history", "",
            ("%history 5",)),
    Command("cd", _FILE, "%cd [folder]", "change the folder; without one, go home", "path", "surroundings.cd", "",
            ("%cd models",)),
    Command("env", _HERE, "%env [NAME=value]", "show or set environment variables", "variable", "surroundings.env", "",
            ("%env TSREPL_COMPILE=off",)),
    Command("who", _HERE, "%who", "what is defined", "", "overview.who"),
    Command("reset", _HERE, "%reset [-f]", "forget everything that is defined", "number", "overview.reset",
            "The prompt asks before it does; with -f it does not.", ("%reset -f",)),
    Command("help", _HERE, "%help [command]", "this list, or more about one command", "command", "commands.show_help",
            "", ("%help trace",)),
)  # fmt: skip

_IN_BRACKETS: Final = re.compile(r"\[[^\]]*\]")
"""The parts of a usage that may be left out."""
_BY_NAME: Final = {command.name: command for command in COMMANDS}


_ALIASES: Final = {"timeit": "time"}
_CELL_COMMAND: Final = "time"


def find_command(name: str) -> Command:
    """The command of that name.  Raises UsageError, with the nearest name."""
    command = _BY_NAME.get(_ALIASES.get(name, name))
    if command is None:
        near = tuple(hint.replace("'", f"'{COMMAND}", 1) for hint in did_you_mean(name, _BY_NAME))
        raise UsageError(f"there is no command {COMMAND}{name}", hints=near or ("%help lists the commands",))
    return command


def run_text(
    workspace: Workspace, text: str, filename: str = "", *, stop: bool = True, is_typed: bool = False
) -> Iterator[Reply]:
    """Run the entries of the text, statements and commands; with `stop`, none after one that failed.

    An interrupt ends them all, and so does a word that leaves.  Errors are replies.  Positions in them name `filename`,
    or the number of the entry.  Only what `is_typed` may have lines for the system's shell.
    """
    if workspace.partner is not None and not text.strip():
        yield from workspace.partner.run("")
    name = filename or workspace.entry_name
    every, done = split_entries(text), 0
    for _, group in groupby(enumerate(every), _group):
        entries = [entry for _, entry in group]
        done += len(entries)
        failed = ends = False
        for reply in _run_group(workspace, entries, name, is_typed):
            ends = ends or isinstance(reply, LeaveReply)
            if isinstance(reply, ErrorReply):
                failed, ends = True, ends or reply.kind == INTERRUPTED
                workspace.error = reply
            yield reply
        if ends:
            return
        if failed and stop:
            yield from workspace.syntax_errors(every[done:], name)
            return


def _group(numbered: tuple[int, Entry]) -> int:
    """Definitions in a row go together, so that they may use each other in any order; all else stands alone."""
    number, entry = numbered
    return -1 if entry.is_definition else number


def _run_group(
    workspace: Workspace, entries: Sequence[Entry], filename: str, is_typed: bool = False
) -> Iterable[Reply]:
    first = entries[0]
    if workspace.partner is not None and not first.is_command:
        return chain.from_iterable(workspace.partner.run(entry.text) for entry in entries if workspace.partner)
    if first.text.strip() in LEAVE:
        return [LeaveReply()] if workspace.partner is None else workspace.partner.quit()
    if first.is_definition:
        return workspace.run_definitions(entries, filename)
    if first.system:
        return [SystemReply(first.system)] if is_typed else error_replies(_no_system(first.system))
    if first.is_command or first.text.strip() in HELP:
        return _run_line(workspace, first.text if first.is_command else f"{COMMAND}help")
    return workspace.run_entry(first, filename)


def _no_system(command: str) -> UsageError:
    return UsageError(
        f"!{command} is for the system's shell, and files do not run that", hints=("type it at the prompt",)
    )


def _run_line(workspace: Workspace, text: str) -> Iterator[Reply]:
    try:
        with workspace.command():
            yield from run_command(workspace, text)
    except (GeneratorExit, SystemExit):
        raise
    except BaseException as error:
        yield from error_replies(error)


def run_command(workspace: Workspace, text: str) -> Iterable[Reply]:
    """Run a command line.  Raises UsageError and whatever the command raises."""
    if text.lstrip().startswith(CELL):
        return _run_cell(workspace, text.strip())
    name, _, argument = text.strip().removeprefix(COMMAND).partition(" ")
    command = find_command(name)
    argument = argument.strip()
    if not command.argument and argument:
        raise UsageError(f"{COMMAND}{name} takes no argument", hints=(f"write {command.usage}",))
    if not argument and command.argument and _IN_BRACKETS.sub("", command.usage.partition(" ")[2]).strip():
        raise UsageError(f"{COMMAND}{name} needs an argument", hints=(f"write {command.usage}",))
    if command.runs_calls and _NO_GRAD.search(argument):
        return _without_gradients(workspace, command, _NO_GRAD.sub("", argument).strip())
    return command.function(workspace, argument)


NO_GRAD: Final = "--no-grad"
_NO_GRAD: Final = re.compile(rf"(?:^|(?<=\s)){NO_GRAD}(?:\s+|$)")


def _without_gradients(workspace: Workspace, command: Command, argument: str) -> Iterator[Reply]:
    """The replies of a command while no gradients are recorded."""
    coming: Iterator[Reply] | None = None
    while True:
        with no_grad(), workspace.suggesting(NO_GRAD):
            coming = iter(command.function(workspace, argument)) if coming is None else coming
            reply = next(coming, None)
        if reply is None:
            return
        yield reply


def _run_cell(workspace: Workspace, text: str) -> Iterator[Reply]:
    """Run the lines behind `%%time`, and tell how long they took.  Raises UsageError for another command."""
    head, _, body = text.partition("\n")
    name, _, first = head.removeprefix(CELL).partition(" ")
    if find_command(name).name != _CELL_COMMAND:
        raise UsageError(
            f"{CELL}{name} is no command for lines", hints=(f"write {COMMAND}{name} and what it is about",)
        )
    if not (first + body).strip():
        raise UsageError(f"{CELL}{name} needs lines behind it", hints=(f"{COMMAND}{name} f(x) takes an expression",))
    begin = perf_counter()
    failed = False
    for reply in run_text(workspace, f"{first}\n{body}", workspace.entry_name):
        failed = failed or isinstance(reply, ErrorReply)
        yield reply
    yield TextReply(f"{'stopped after' if failed else 'took'} {duration(perf_counter() - begin)}")
