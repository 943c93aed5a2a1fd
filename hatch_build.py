"""The wheel's build hook: a wheel may carry images of the library of operators, made for one kind of processor.

In: `TSREPL_IMAGES`, a folder of images as `tools/build_wheel.py` makes it.  Out: a wheel with these files, for systems
like this one; without the variable, a wheel for all.
"""

from __future__ import annotations

import os
import sysconfig
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "TSREPL_IMAGES"
PLACE = "engine/fuser/library/images"


class ImagesHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the folder of images."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = os.environ.get(VARIABLE)
        if folder:
            build_data["force_include"][folder] = PLACE
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
