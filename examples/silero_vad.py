"""Voice activity detection with a model that others trained: `silero_vad.jit`, from its code to its insides.

    pip install --no-deps silero-vad
    python examples/silero_vad.py [path to silero_vad.jit]

Without PyTorch: the archive is loaded, run as a stream of chunks of 512 samples at 16 kHz, watched from within, cut in
two, saved and loaded again.  `docs/silero-vad.md` tells what is seen on the way.
"""

from __future__ import annotations

import sys
import tempfile
import time
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import numpy as np

import engine
from engine.executor.bytecode.instructions import CONSTANT
from engine.executor.interpreter.interpreter import InterpreterState
from engine.executor.plans.executor import code_of

RATE = 16_000
CHUNK = 512


def find_model() -> Path | None:
    """The archive in the installed package; the package itself, which needs PyTorch, is not imported."""
    spec = find_spec("silero_vad")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    places = (Path(folder, "data", "silero_vad.jit") for folder in folders)
    return next((place for place in places if place.exists()), None)


def speech_like(seconds: float) -> np.ndarray:
    """Hiss, and from second 1 to 3 something like vowels: harmonics of a wavering pitch under a formant."""
    n = np.arange(int(seconds * RATE) // CHUNK * CHUNK)
    t = n / RATE
    phase = 2 * np.pi * (120 * t - 20 / (6 * np.pi) * np.cos(6 * np.pi * t))
    voice = sum(np.sin(k * phase) / k * np.exp(-(((k * 130 - 700) / 600) ** 2)) for k in range(1, 25))
    loudness = np.clip(np.sin(4 * np.pi * t), 0, 1) * ((t > 1) & (t < 3))
    hiss = (n * n * 7919 + n * 104729) % 65537 / 65537 - 0.5
    return (0.3 * voice * loudness + 0.01 * hiss).astype(np.float32)


def probabilities(model: engine.ScriptModule, signal: np.ndarray) -> list[float]:
    """How likely there is speech in each chunk; the model remembers what came before."""
    model.reset_states()
    with engine.no_grad():
        return [model(engine.tensor(chunk), RATE).item() for chunk in signal.reshape(-1, CHUNK)]


def time_of_chunk(model: engine.ScriptModule) -> float:
    """Seconds for one chunk, the median of many."""
    chunk, times = engine.zeros(CHUNK), []
    with engine.no_grad():
        for _ in range(200):
            start = time.perf_counter()
            model(chunk, RATE)
            times.append(time.perf_counter() - start)
    return sorted(times)[100]


def show_stream(found: list[float], step: int = 4) -> None:
    for at in range(0, len(found), step):
        print(f"{at * CHUNK / RATE:6.2f} s  {found[at]:5.3f}  {'#' * round(found[at] * 50)}")


def show_inside(model: engine.ScriptModule, chunk: engine.Tensor) -> None:
    """What comes out of the layers of the encoder, and the first steps of the interpreter."""
    with model.tap("_model.encoder.?", "_model.decoder:h", "_model") as taps:
        model(chunk, RATE)
    for place, value in taps.values.items():
        value = value[0] if isinstance(value, tuple) else value
        print(f"{place:20} {list(value.shape)!s:14} mean {value.mean().item():8.4f}")
    state = InterpreterState(code_of(model._ivalue.type.methods["forward"]))
    state.start(model._ivalue, chunk, RATE)
    running = (state.frame for _ in iter(state.step, False))
    for frame in islice((each for each in running if each.instruction.opcode != CONSTANT), 8):
        print(f"{frame.code.name:>15} {frame.pc:3}: {frame.instruction}")


def cut_in_two(model: engine.ScriptModule, chunk: engine.Tensor, folder: Path) -> None:
    """The encoder alone, saved as an archive of its own."""
    encoder = model._model.cut(outputs=["encoder"])
    encoder.save(folder / "encoder.pt")
    with_context = engine.zeros(1, CHUNK + 64)
    with_context[0, 64:] = chunk
    features = engine.load(folder / "encoder.pt")(with_context)
    print(f"encoder.pt: {(folder / 'encoder.pt').stat().st_size:,} bytes, gives {list(features.shape)}")


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else find_model()
    if path is None:
        sys.exit("there is no model: pip install --no-deps silero-vad, or give the path of silero_vad.jit")
    model, signal = engine.load(path), speech_like(3.84)
    print(model._model.code)
    found = probabilities(model, signal)
    show_stream(found)
    print(
        f"one of {len(found)} chunks, {CHUNK / RATE * 1000:.0f} ms of sound, took {time_of_chunk(model) * 1e6:.0f} µs"
    )
    model.reset_states()
    loud = engine.tensor(signal[RATE + 2 * CHUNK : RATE + 3 * CHUNK])
    show_inside(model, loud)
    with tempfile.TemporaryDirectory() as folder:
        cut_in_two(model, loud, Path(folder))
        model.reset_states()
        model.save(Path(folder, "again.pt"))
        same = probabilities(engine.load(Path(folder, "again.pt")), signal) == found
        print(f"saved and loaded again: {'the same probabilities' if same else 'other probabilities'}")


if __name__ == "__main__":
    main()
