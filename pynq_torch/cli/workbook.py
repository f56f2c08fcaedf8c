"""``python -m pynq_torch workbook FOLDER``: the notebooks, and what they read beside them."""

from __future__ import annotations

import argparse
import shlex
import shutil
from collections.abc import Iterable
from pathlib import Path

from pynq_torch.errors import PynqTorchError
from pynq_torch.paths import BITSTREAMS, HW, NOTEBOOKS

__all__ = ["declare", "trust", "write"]

#: What the lessons name by ``../hw`` and ``../bitstreams``.
_PARTS = (NOTEBOOKS, HW, BITSTREAMS)
#: What tools leave in a checkout; ``hw/build`` may be large.
_LEFTOVERS = shutil.ignore_patterns("build", "__pycache__", ".ipynb_checkpoints", "waves")


def write(folder: Path, *, force: bool = False) -> Path:
    """Write notebooks, kernels and overlays into a folder.

    Parameters
    ----------
    folder : pathlib.Path
        Made where it is missing.
    force : bool
        Take a folder that is not empty; files of the same name are replaced, others stay.

    Returns
    -------
    pathlib.Path
        The first lesson.

    Raises
    ------
    PynqTorchError
        The folder is not empty, is a file, or cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise PynqTorchError(f"'{folder}' is a file; expected a new or empty folder")
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise PynqTorchError(
            f"the folder '{folder}' is not empty, and nothing was written; name a new one, or "
            "replace the lessons in it with --force"
        )
    try:
        for part in _PARTS:
            shutil.copytree(part, folder / part.name, dirs_exist_ok=True, ignore=_LEFTOVERS,
                            copy_function=shutil.copyfile)  # fmt: skip
    except OSError as error:
        raise PynqTorchError(f"'{folder}' cannot be written: {error}") from error
    trust((folder / NOTEBOOKS.name).glob("*.ipynb"))
    return min((folder / NOTEBOOKS.name).glob("*.ipynb"))


def trust(notebooks: Iterable[Path]) -> None:
    """Sign notebooks as Jupyter signs those that its user has run.

    JupyterLab drops SVG from the outputs of a notebook that it does not trust: of a drawing, only
    its words are left. Without Jupyter there is nothing to sign for.
    """
    try:
        import nbformat
        from nbformat.sign import NotebookNotary
    except ImportError:
        return
    notary = NotebookNotary()
    for path in notebooks:
        notary.sign(nbformat.read(path, as_version=4))


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare ``workbook FOLDER [--force]``."""
    parser.description = (
        "Write the notebooks, and the kernels and overlays that they read, into a folder of yours."
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="a new or an empty folder")
    text = "take a folder that is not empty: files of the same name are replaced"
    parser.add_argument("--force", action="store_true", help=text)
    parser.set_defaults(func=_run)


def _run(parsed: argparse.Namespace) -> int:
    first = write(parsed.folder, force=parsed.force)
    lessons = len(list(first.parent.glob("*.ipynb")))
    print(
        f"wrote {lessons} notebooks to {first.parent}, with hw/ and bitstreams/ beside them\n"
        f"next: jupyter lab {shlex.quote(str(parsed.folder))}, and open notebooks/{first.name}"
    )
    return 0
