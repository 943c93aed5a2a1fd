"""Archives as a whole: `load_archive` and `save_archive`.

In: a path (or an open binary file), or a module or function.  Out: the module's object with its code
compiled on demand, or the file.  What comes from an archive is checked before it is used, and what is
written appears in one step and is the same, byte for byte, each time the same module is saved.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal

from engine.aten.values.ivalue import Object
from engine.aten.values.storage import address
from engine.ir.clone import copy_graph
from engine.ir.unit import Function
from engine.lang import scalars
from engine.lang.deferred import deferred
from engine.lang.errors import ArchiveError, ArgumentTypeError, EngineError, MissingOperatorError, causes
from engine.lang.interpreter_settings import collecting_rarely
from engine.lang.progress import step
from engine.lang.records import dataclass
from engine.lang.schema import Argument, FunctionSchema
from engine.lang.types import BOOL, ClassType, TupleType
from engine.passes.erase_shape_information import unshaped
from engine.serialize.code.kept_graphs import KeptGraphs
from engine.serialize.code.source_import import SourceImporter
from engine.serialize.container.qualified_names import CODE_FOLDER, HOLDER, MODEL, record_of
from engine.serialize.container.read import VERSIONS, WRITTEN_BY_SAVE, Container, StoredRecord, checked_name, folder_for
from engine.serialize.identify.load_errors import explain_load_errors
from engine.serialize.mobile.file import BYTECODE, is_bytecode_only, is_flatbuffer, open_program
from engine.serialize.pickling.read import PickleGlobal
from engine.serialize.pickling.scan import PickleRefusal, expect_tuple
from engine.serialize.pickling.tensors import TensorReader, storage_bytes, wanted_device
from engine.serialize.pickling.unpickle import NOT_RUN, Runner, unpickle
from engine.serialize.upgrade.versions import DATA_FOLDER_SINCE, NEWEST_READ, OLDEST, OLDEST_WRITTEN

if TYPE_CHECKING:  # what few files need, and what saving does
    import hashlib

    from engine.serialize.code import class_export, debug_records
    from engine.serialize.container import write as container_write
    from engine.serialize.legacy import model_json
    from engine.serialize.pickling import traced_inputs
    from engine.serialize.pickling import write as pickle_write
else:
    hashlib = deferred("hashlib")
    class_export = deferred("engine.serialize.code.class_export")
    debug_records = deferred("engine.serialize.code.debug_records")
    container_write = deferred("engine.serialize.container.write")
    model_json = deferred("engine.serialize.legacy.model_json")
    traced_inputs = deferred("engine.serialize.pickling.traced_inputs")
    pickle_write = deferred("engine.serialize.pickling.write")

ExtraFiles = dict[str, Any]
Form = Literal["archive", "mobile", "flatbuffer"]
PathOrFile = str | os.PathLike[str] | BinaryIO

_BYTE_ORDERS: Final = {b"little": False, b"big": True}
_EXTRA: Final = "extra/"
LONGEST_NAME: Final = 1 << 15


# -- loading


@collecting_rarely()
def load_archive(
    path: PathOrFile,
    extra_files: ExtraFiles | None = None,
    map_location: scalars.device | str | None = None,
    run: Runner | None = None,
    *,
    lazy: bool = True,
    mapped: bool = True,
    with_shapes: bool = False,
) -> Object:
    """The module in an archive.

    `extra_files` names extra records, whose contents (bytes) are put in; one that the archive does not
    have keeps what is given, as bytes.  `map_location` is the device to bring all tensors to, `run` runs a method
    (needed for modules with `__setstate__`).  Classes and signatures are read now; with `lazy`, each method is compiled
    when it is first needed, which raises what is wrong with it, else now.  With `mapped`, the tensors of a large file
    are read when they are first touched, and compared with their checksums before a program of the archive first runs,
    or when it is saved; without, all is read and compared now.  `with_shapes` gives the graphs of traced methods the
    sizes that they were traced with.  Raises ArchiveError for everything that is wrong with the file.
    """
    with explain_load_errors(path):
        container = open_program(path, mapped)
    try:
        with explain_load_errors(path):
            module = _load(container, map_location, run, lazy)
            if with_shapes and traced_inputs.RECORD in container:
                traced_inputs.restore_shapes(module, container.read(traced_inputs.RECORD))
        if extra_files is not None:
            _fill(extra_files, container)
        return module
    except RecursionError:
        raise ArchiveError("the archive nests deeper than this Python can follow") from None
    except MemoryError:
        raise ArchiveError("the archive needs more memory than there is") from None


def _fill(extra_files: ExtraFiles, container: Container) -> None:
    for name, given in extra_files.items():
        if _EXTRA + name in container:
            extra_files[name] = container.read(_EXTRA + name)
        elif isinstance(given, str):
            extra_files[name] = given.encode()


def _load(container: Container, map_location: scalars.device | str | None, run: Runner | None, lazy: bool) -> Object:
    version = _version_of(container)
    swapped = _byte_order(container)
    target = wanted_device(map_location)
    if MODEL in container:
        module = model_json.load_legacy(container, version, target, run, lazy=lazy)
        container.check()
        return module
    filling = _Filling(container, run)
    if is_bytecode_only(container):
        from engine.serialize.mobile.load import load_bytecode  # which few files need

        return load_bytecode(container, version, target, run and filling, filling.check, lazy=lazy, swapped=swapped)
    if not is_flatbuffer(container) and "constants.pkl" not in container and "data.pkl" not in container:
        raise _no_program(container)
    constants: tuple[Any, ...] = ()
    records = _CodeRecords(container)
    importer = SourceImporter(records, lambda: constants, version)
    importer.before_run = filling.check
    run = None if run is None else filling

    def pickled(name: str) -> Any:
        record, tensors = f"{name}.pkl", TensorReader(container, name, swapped, target)
        data, stored = container.read(record), container.stored_size(record)
        return unpickle(
            data, record, tensors, importer.find_signed_type, run, stored=stored, read_type=importer.read_type
        )

    if is_flatbuffer(container):
        from engine.serialize.mobile.makers import program_values

        values = program_values(container, importer.find_signed_type, target, run)
        constants = values.constants()
        module = values.module()
    else:
        constants = _tuple_of(pickled("constants")) if "constants.pkl" in container else ()
        importer.graphs = KeptGraphs(records.all)  # which depend on the constants
        module = pickled("data")
    if not isinstance(module, Object):
        raise ArchiveError("the archive holds data and no module", record="data.pkl", hints=(WRITTEN_BY_SAVE,))
    importer.read_signatures()
    if not lazy:
        importer.compile_all()
    return module


@dataclass(slots=True, eq=False)
class _Filling:
    """Runs `__setstate__` methods.  Where one calls an unknown operator, the load goes on without it: then no
    program of the archive can run, and says so."""

    container: Container
    run: Runner | None
    unfilled: tuple[str, MissingOperatorError] | None = None

    def __call__(self, function: Function, args: list[Any]) -> Any:
        assert self.run is not None
        try:
            return self.run(function, args)
        except EngineError as error:
            missing = _missing_operator(error)
            if missing is None:
                raise
            self.unfilled = self.unfilled or (args[0].type.qualname, missing)
            return NOT_RUN

    def check(self) -> None:
        """Check the archive before one of its functions first runs.  Raises ArchiveError, MissingOperatorError."""
        check_all(self.container)
        if self.unfilled is not None:
            name, cause = self.unfilled
            reason = str(cause).partition("\n")[0].rstrip(":")
            text = f"'{name}' is empty, since its __setstate__ could not run: {reason}"
            raise MissingOperatorError(text, hints=cause.hints) from cause


def check_all(container: Container) -> None:
    """Compare all unchecked records with their checksums, reporting progress.  Raises ArchiveError."""
    names = sorted(container.unchecked)
    done, total = 0, sum(map(container.size, names))
    for name in names:
        container.check((name,))
        done += container.size(name)
        step("checking", container.label, done, total)


def _missing_operator(error: BaseException | None) -> MissingOperatorError | None:
    """The operator's error in a chain of causes."""
    return next((each for each in causes(error) if isinstance(each, MissingOperatorError)), None)


def _no_program(container: Container) -> ArchiveError:
    hint = "torch.save writes no programs; torch.jit.save does"
    return ArchiveError("the archive holds no program", record="data.pkl", hints=(hint,))


def _tuple_of(value: Any) -> tuple[Any, ...]:
    try:
        expect_tuple(value, "the table of constants")
    except PickleRefusal as reason:
        raise ArchiveError(str(reason), record="constants.pkl") from None
    if _holds_a_name(value):
        raise ArchiveError("the table of constants holds the name of a function as a value", record="constants.pkl")
    return value  # type: ignore[no-any-return]  # as it was checked


def _holds_a_name(value: Any) -> bool:
    """True if the value contains a `PickleGlobal`, which only calls may use; shared parts are visited once."""
    waiting, seen = [value], set()
    while waiting:
        each = waiting.pop()
        if isinstance(each, PickleGlobal):
            return True
        if isinstance(each, (dict, tuple, list)) and id(each) not in seen:
            seen.add(id(each))
            waiting += (*each, *each.values()) if isinstance(each, dict) else each
    return False


def _version_of(container: Container) -> int:
    if is_flatbuffer(container):
        from engine.serialize.mobile.records import root_of, version_of

        return version_of(root_of(container))
    name = next((each for each in VERSIONS if each in container), None)
    if name is None:
        raise ArchiveError("the archive does not say its version", record="version", hints=(WRITTEN_BY_SAVE,))
    text = container.read_short(name).strip()
    if not text.isdigit() or len(text) > 9:
        raise ArchiveError(f"the archive says its version is {text!r:.40}", record=name)
    if not OLDEST <= int(text) <= NEWEST_READ:
        raise ArchiveError(
            f"the archive has version {int(text)}, and versions {OLDEST} to {NEWEST_READ} are known",
            record=name,
            hints=("a later PyTorch wrote it; one that writes a known version can save it again",),
        )
    return int(text)


def _byte_order(container: Container) -> bool:
    """True if the byte order of the tensors must be swapped."""
    order = container.read_short("byteorder") if "byteorder" in container else b"little"
    if order not in _BYTE_ORDERS:
        raise ArchiveError(f"the archive's byte order is {order!r:.40}", record="byteorder")
    return _BYTE_ORDERS[order]


class _CodeRecords:
    """The texts of an archive's code, read when first needed."""

    def __init__(self, container: Container) -> None:
        self._container = container

    def all(self) -> Iterator[tuple[str, bytes]]:
        """All records of code by name."""
        for name in sorted(self._container.names()):
            if name.startswith(CODE_FOLDER) and name.endswith(".py"):
                yield name, self._container.read(name)

    def text(self, prefix: str) -> tuple[str, StoredRecord | None] | None:
        """The code that defines the names under `prefix`, and its debug record; None when there is none."""
        name = record_of(prefix)
        if name not in self._container:
            return None
        debug = f"{name}.debug_pkl"
        stored = self._container.stored(debug) if debug in self._container else None
        try:
            return self._container.read(name).decode(), stored
        except UnicodeDecodeError as error:
            raise ArchiveError("the code is not UTF-8", record=name, offset=error.start) from None


# -- saving


def save_archive(
    target: Object | Function,
    path: PathOrFile,
    extra_files: Mapping[str, str | bytes] | None = None,
    run: Runner | None = None,
    *,
    form: Form = "archive",
) -> None:
    """Write a module, or a function (which will load as a module), to `path` or into a binary file.

    `form` is "archive"; "mobile" for one that has bytecode, too; or "flatbuffer", which is another file with both.
    Raises ArchiveError for what archives cannot hold or where the file cannot be written, CompileError
    for a method that does not compile, NotSupportedError for one that has no bytecode.
    """
    module = _holder(target) if isinstance(target, Function) else target
    extra = {name: content.encode() if isinstance(content, str) else content for name, content in _checked(extra_files)}
    try:
        pieces, size = (
            _flat_pieces(module, extra, run) if form == "flatbuffer" else _pieces(module, path, extra, run, form)
        )
    except RecursionError:
        raise ArchiveError("the module nests deeper than this Python can follow") from None
    if not isinstance(path, (str, os.PathLike)):
        container_write.write_all(path, pieces)
        return
    container_write.replace_file(path, container_write.told(pieces, path, size))


def _pieces(
    module: Object, path: PathOrFile, extra: Mapping[str, bytes], run: Runner | None, form: Form
) -> tuple[Iterator[Any], int]:
    """The bytes of an archive, and how many there are."""
    writer = container_write.ContainerWriter(folder_for(path))
    _add_records(writer, module, extra, run, form)
    return iter(writer.pieces()), writer.size()


def _flat_pieces(module: Object, extra: Mapping[str, bytes], run: Runner | None) -> tuple[Iterator[Any], int]:
    """The bytes of a flatbuffer, and how many there are."""
    from engine.serialize.mobile.save import flatbuffer  # which few need

    source = _source_of(module)
    if source is not None:
        check_all(source)
    data = flatbuffer(module, extra, run)
    return iter((data,)), len(data)


def _checked(extra_files: Mapping[str, str | bytes] | None) -> Iterator[tuple[str, str | bytes]]:
    """The extra files.  Raises ArgumentTypeError, ArchiveError for one that cannot be saved."""
    for name, content in (extra_files or {}).items():
        if not isinstance(name, str) or not isinstance(content, (str, bytes, bytearray, memoryview)):
            raise ArgumentTypeError(f"the extra file {name!r:.60} is neither text nor bytes")
        _check_extra(name)
        yield name, content if isinstance(content, str) else bytes(content)


def form_of(path: str | os.PathLike[str]) -> Form:
    """The form that the ending of a file's name asks for: `.ptl` and `.ff` are for phones."""
    endings: dict[str, Form] = {".ptl": "mobile", ".ff": "flatbuffer"}
    return endings.get(os.path.splitext(os.fsdecode(path))[1], "archive")


def _source_of(module: Object) -> Container | None:
    """The archive that the module was loaded from."""
    checks = (getattr(method, "before_run", None) for method in module.type.methods.values())
    owners = (getattr(check, "__self__", None) for check in checks)
    return next((owner.container for owner in owners if isinstance(owner, _Filling)), None)


def _add_records(
    writer: container_write.ContainerWriter, module: Object, extra: Mapping[str, bytes], run: Runner | None, form: Form
) -> None:
    for name, content in extra.items():
        writer.add(_EXTRA + name, content)
    code = class_export.CodeExporter()
    addresses: dict[str, int] = {}
    data = pickle_write.Pickler(code.name_of, code.annotation, run)
    _add_pickle(writer, "data", data.dump(module, module.type), data, addresses)
    code.write_all(module.type, data.classes)
    debug = debug_records.DebugWriter()
    for prefix, printer in code.printers.items():
        writer.add(record_of(prefix), str(printer.body).encode(), deflate=True)
        writer.add(f"{record_of(prefix)}.debug_pkl", debug.record(printer.body.marks), deflate=True)
    table = code.constants
    constants = pickle_write.Pickler(code.name_of, code.annotation, run)
    pickled = constants.dump(tuple(table.values), TupleType(tuple(table.types)))
    _add_pickle(writer, "constants", pickled, constants, addresses)
    if form == "mobile":
        from engine.serialize.mobile.save import bytecode_value, mobile_functions  # which few need

        pickler = pickle_write.Pickler(code.name_of, code.annotation, run, constants.storages)
        before = len(constants.storages)
        pickled = pickler.dump(*bytecode_value(mobile_functions(module, code)))
        _add_pickle(writer, "constants", pickled, pickler, addresses, before, BYTECODE)
    examples = traced_inputs.examples_of(module)
    if examples:
        pickler = pickle_write.Pickler(code.name_of, code.annotation, run)
        _add_pickle(writer, traced_inputs.NAME, pickler.dump(examples, traced_inputs.TYPE), pickler, None)
    version = max(code.version, OLDEST_WRITTEN)
    writer.add(VERSIONS[0] if version >= DATA_FOLDER_SINCE else VERSIONS[1], f"{version}\n".encode())
    writer.add("byteorder", b"little")
    source = _source_of(module)

    def seal(crcs: Mapping[str, int]) -> bytes:
        if source is not None:
            # Damaged data must not get a new, valid checksum.
            for name, place in addresses.items():
                source.compared(place, crcs[name])
            source.check()
        return _fingerprint(writer, crcs)

    writer.seal = (".data/serialization_id", seal)


def _check_extra(name: str) -> None:
    """Raises ArchiveError for a name that could not be read back."""
    try:
        encoded = name.encode()
        checked_name(_EXTRA.encode() + encoded, 0)
        fits = len(encoded) <= LONGEST_NAME and bool(name) and not name.endswith("/")
    except (UnicodeEncodeError, ArchiveError):
        fits = False
    if not fits:
        hint = "it is a path inside of the archive, like notes/a.txt"
        raise ArchiveError(f"an extra file cannot be called {name!r:.60}", hints=(hint,))


def _add_pickle(
    writer: container_write.ContainerWriter,
    folder: str,
    data: bytes,
    pickler: pickle_write.Pickler,
    addresses: dict[str, int] | None,
    first: int = 0,
    record: str = "",
) -> None:
    """Add a pickle, after the storages it refers to, whose addresses it notes; those before `first` are there.

    Without `addresses`, the storages are records without bytes.
    """
    for index, storage in [*enumerate(pickler.storages)][first:]:
        name = f"{folder}/{index}"
        writer.add(name, storage_bytes(storage) if addresses is not None else b"")
        if addresses is not None:
            addresses[name] = address(storage.owner)
    writer.add(record or f"{folder}.pkl", data)


def _fingerprint(writer: container_write.ContainerWriter, crcs: Mapping[str, int]) -> bytes:
    """Forty digits that two archives share only if their records have the same names, sizes and checksums."""
    text = "".join(f"{name}\n{len(data)} {crcs[name]}\n" for name, data in writer.records.items())
    digest = hashlib.sha256(text.encode()).digest()
    return str(int.from_bytes(digest, "big") % 10**40).zfill(40).encode()


def _holder(function: Function) -> Object:
    """The module that holds a function saved by itself; its `forward` has no defaults, and returns the types that the
    graph does, as in PyTorch: `Union[List[int], int]` of a list is `List[int]`."""
    type = ClassType(HOLDER, is_module=True)
    type.add_attribute("training", BOOL)
    graph = copy_graph(function.graph)
    graph.block.insert_input(0, type, "self")
    arguments = [Argument(a.name, a.type) for a in function.schema.arguments]
    returns = tuple(Argument("", unshaped(value.type)) for value in graph.outputs)
    schema = FunctionSchema("forward", arguments=(Argument("self", type), *arguments), returns=returns)
    forward = Function(f"{type.qualname}.forward")
    forward.define(schema, graph)
    type.methods["forward"] = forward
    return Object(type, [True])
