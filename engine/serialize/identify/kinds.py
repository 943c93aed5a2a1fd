"""The kinds of files that people have where a model should be: one row each.

In: nothing.  Out: for each kind its name in words, whether programs or weights can be read from it, and what to do next
(`{file}` stands for its path as a shell wants it, `{name}` as Python does).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from engine.lang.records import dataclass


class Kind(NamedTuple):
    """`title` follows "this is"."""

    title: str
    advice: tuple[str, ...] = ()
    is_program: bool = False
    has_weights: bool = False


class Finding(NamedTuple):
    """A rule's result; `title` and `advice`, if given, are more exact than those of the kind."""

    kind: str
    facts: tuple[tuple[str, str], ...] = ()
    title: str = ""
    advice: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Head:
    """A file's path, first bytes and size."""

    path: str
    data: bytes
    size: int


_LOOK: Final = ("look inside: tsrepl show {file}",)
_WEIGHTS: Final = (
    "see the tensors: tsrepl show {file}",
    "give them to a module with the same names: module.load_state_dict(engine.load_weights({name}))",
)
_NO_CODE: Final = "it holds no code: the Python class that made it is needed to run it"
_AGAIN: Final = "fetch it again and compare its size with the source's"
_WHENCE: Final = "check the path, and what wrote the file"

KINDS: Final[dict[str, Kind]] = {
    "torchscript": Kind("a TorchScript archive", _LOOK, is_program=True),
    "torchscript-old": Kind("a TorchScript archive of PyTorch 1.0 to 1.2 (model.json)", _LOOK, is_program=True),
    "mobile": Kind("a TorchScript archive with mobile bytecode (.ptl)", _LOOK, is_program=True),
    "mobile-flatbuffer": Kind("a mobile program as a flatbuffer, with its code (.ptl, .ff)", _LOOK, is_program=True),
    "mobile-bytecode-only": Kind(
        "mobile bytecode without code (.ptl)", (*_LOOK, "list its instructions: tsrepl show --bytecode {file}"),
        is_program=True,
    ),
    "mobile-weights": Kind("tensors in a file for mobile devices (.ptl, .ff)", _WEIGHTS, has_weights=True),
    "state-dict": Kind("a state dict: named tensors that torch.save wrote", (*_WEIGHTS, _NO_CODE), has_weights=True),
    "checkpoint": Kind("a checkpoint: tensors among other values, from torch.save", (*_WEIGHTS, _NO_CODE),
                       has_weights=True),
    "module-pickle": Kind(
        "a pickled module: torch.save of a whole model, which holds weights and names of Python classes but no code",
        ("see its tensors without running anything: tsrepl show {file}",
         "keep the weights: tsrepl extract {file} weights.safetensors",
         "to run it, its Python classes are needed: load it there, then torch.jit.script(model).save('model.pt')"),
        has_weights=True,
    ),
    "tensors": Kind("tensors that torch.save wrote", ("see them: tsrepl show {file}",), has_weights=True),
    "torch-value": Kind("a value without tensors that torch.save wrote", ("see it: tsrepl show {file}",)),
    "optimizer": Kind(
        "the state of an optimizer, which torch.save wrote",
        ("see its tensors: tsrepl show {file}",
         "give it to an optimizer of the same parameters: optimizer.load_state_dict(engine.load({name}))"),
        has_weights=True,
    ),
    "torch-tar": Kind(
        "a tar file that torch.save wrote before PyTorch 0.1.10",
        (*_WEIGHTS, "keep the weights: tsrepl extract {file} weights.safetensors"),
        has_weights=True,
    ),
    "torch-package": Kind(
        "a torch.package: Python sources and pickles",
        ("it runs Python when it is loaded, which nothing here does; script the model and torch.jit.save it",),
    ),
    "pt2": Kind(
        "a program of torch.export (.pt2), not TorchScript",
        ("torch.export.load reads it; for an archive to read here, torch.jit.trace the model and save that",),
    ),
    "executorch": Kind("an ExecuTorch program (.pte)", ("the ExecuTorch runtime runs it",)),
    "safetensors": Kind("safetensors: named tensors", _WEIGHTS, has_weights=True),
    "npz": Kind("arrays of NumPy (.npz)", _WEIGHTS, has_weights=True),
    "npy": Kind("an array of NumPy (.npy)", ("see it: tsrepl show {file}",), has_weights=True),
    "onnx": Kind("an ONNX model", ("onnxruntime runs it; PyTorch made it from a model that it can also script",)),
    "gguf": Kind("a GGUF model (llama.cpp)", ("llama.cpp and its relatives read it",)),
    "keras-h5": Kind("an HDF5 file, as Keras writes (.h5)", ("h5py or keras reads it",)),
    "keras-zip": Kind("a Keras model (.keras)", ("keras reads it",)),
    "tflite": Kind("a TensorFlow Lite model", ("the LiteRT (TensorFlow Lite) interpreter runs it",)),
    "torchserve": Kind(
        "a model archive of TorchServe (.mar)", ("the TorchScript archive, if it has one, lies inside",)
    ),
    "pickle": Kind(
        "a Python pickle, and none that torch.save wrote",
        ("do not unpickle it unless you trust where it comes from: loading a pickle can run anything",),
    ),
    "tar": Kind("a tar file", ("unpack it first: tar -xf {file}",)),
    "zip": Kind("a zip file, and none that PyTorch wrote", ("unzip -l {file} lists what is inside",)),
    "compressed": Kind("a compressed file"),
    "ggml": Kind("a GGML model (llama.cpp, before GGUF)", ("old versions of llama.cpp and its relatives read it",)),
    "tensorrt": Kind("an engine of TensorRT", ("TensorRT runs it, on the kind of GPU that it was made for",)),
    "torch7": Kind("a file of Torch7, the Lua program from before PyTorch (.t7)", ("torchfile reads it in Python",)),
    "ncnn": Kind("the layers of an ncnn model (.param)", ("ncnn runs it, with the .bin file that belongs to it",)),
    "media": Kind("a picture, sound, film or document", (_WHENCE,)),
    "executable": Kind("a program or library for a processor, and no model", (_WHENCE,)),
    "weights-index": Kind(
        "an index of weights that lie in several files", ("the files lie beside it; tsrepl show tells what is in each",)
    ),
    "lfs-pointer": Kind(
        "a Git LFS pointer: a note that stands for the file, which was never fetched",
        ("in the checkout: git lfs install && git lfs pull",),
    ),
    "html": Kind(
        "a web page that was saved under this name", ("open it in a browser to see what the site says", _AGAIN)
    ),
    "error-text": Kind("a server's error message that was saved under this name", (_AGAIN,)),
    "source": Kind("Python or TorchScript text", ("run it, under a name that ends in .py: tsrepl run {file}",)),
    "text": Kind("text", ("open it in an editor to see what it says",)),
    "truncated": Kind("a file that is cut off: a download or copy that ended early", (_AGAIN,)),
    "damaged": Kind("a damaged archive", (_AGAIN,)),
    "packed-anew": Kind("a PyTorch archive that was unpacked and zipped again"),
    "zeros": Kind("nothing but zeros, as a copy that failed leaves behind", (_AGAIN,)),
    "empty": Kind("an empty file, of no bytes at all", (_AGAIN,)),
    "unknown": Kind("none of the kinds of files known here", (_WHENCE,)),
}  # fmt: skip
