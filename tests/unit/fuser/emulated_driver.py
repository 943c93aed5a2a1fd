"""A GPU's driver for machines that have none: launches run on the host (see `emulated`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.fuser.gpu import emulated
from engine.fuser.gpu.driver import Arguments
from engine.fuser.gpu.prepared import Step


@dataclass
class EmulatedDriver:
    """`launched`: the names of the launches, with their blocks; `loaded`: those of the functions."""

    launched: list[tuple[str, int]] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)

    def target(self) -> str:
        return "sm_90"

    def multiprocessors(self) -> int:
        return 2

    def load(self, ptx: str, names: Sequence[str]) -> Sequence[Any]:
        assert all(f".entry {name}(" in ptx for name in names)
        self.loaded += names
        return names

    def active_blocks(self, function: Any, step: Step) -> int:
        return 1

    def launcher(self, function: Any, step: Step) -> Callable[[Arguments], None]:
        assert function == step.launch.name
        return lambda arguments: self.launch(step, arguments)

    def launch(self, step: Step, arguments: Arguments) -> None:
        self.launched.append((step.launch.name, step.blocks))
        emulated.run_step(step, np.array(arguments.slots[:], np.int64))
