"""`make wheel`: a wheel with the library of operators, built for this processor or for what `TSREPL_TARGET` names.

In: the checkout.  Out: a file in `dist/`.  Programs of the installed package run on native operators from their first
call, without a compiler; for another Python, numpy or processor, they build the library as without images.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from engine.fuser.library import building, image_files, key
from tsrepl.render.progress import progress_bars

ROOT = Path(__file__).parents[1]
VARIABLE = "TSREPL_IMAGES"


def make_images(folder: Path) -> list[Path]:
    """The images of this process's key, in the folder as the package has them, with the state of the sources."""
    current = key.current()
    place = folder / current.facts["target"]
    place.mkdir(parents=True)
    (folder / key.SOURCES).write_text(f"{current.facts['sources']}\n", "ascii")
    with tempfile.TemporaryDirectory() as room:
        building.build(Path(room))
        return [Path(shutil.copy(file.path, place)) for file in image_files.kept(Path(room))]


def main() -> int:
    """Build the wheel; the exit status of pip."""
    with tempfile.TemporaryDirectory() as folder:
        images = Path(folder) / "images"
        with progress_bars(Console):
            made = make_images(images)
        size = sum(path.stat().st_size for path in made)
        print(f"{len(made)} images for {key.current().facts['target']}, {size / 1024:.0f} KiB")
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", "dist", str(ROOT)]
        return subprocess.run(command, cwd=ROOT, env={**os.environ, VARIABLE: str(images)}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
