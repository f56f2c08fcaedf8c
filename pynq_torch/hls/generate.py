"""Writing the kernel folders of the families from their templates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pynq_torch.errors import PynqTorchError
from pynq_torch.paths import ROOT, to_write

from .instance import Instance

__all__ = ["differences", "fill", "generate", "render"]

#: Names of the templates; ``kernel`` becomes the kernel's name.
FILES = (
    "kernel.cpp",
    "kernel.hpp",
    "kernel_tb.cpp",
    "description.json",
    "hls_config.cfg",
    "run_hls.tcl",
)


def render(instance: Instance) -> dict[str, str]:
    """Return the files of an instance.

    A family's own template of a file is used where there is one, that of ``hw/templates/common``
    otherwise.

    Returns
    -------
    dict of str to str
        File name -> text.

    Raises
    ------
    PynqTorchError
        A template is missing or uses a value that the table does not give; nothing was written.
    """
    import jinja2

    root = ROOT / "hw" / "templates"
    folders = [root / instance.family, root / "common"]
    made = {}
    for file in FILES:
        try:
            values = {"name": instance.name, "family": instance.family, **instance.values}
            made[file.replace("kernel", instance.name)] = fill(file, folders, values)
        except jinja2.TemplateNotFound as error:
            raise PynqTorchError(
                f"{instance.name}: no template {error} in {folders[0]} or {folders[1]}"
            ) from error
        except jinja2.TemplateError as error:
            raise PynqTorchError(
                f"{instance.name}: template {file}.j2 of family {instance.family}: {error}"
            ) from error
    return made


def fill(file: str, folders: Sequence[Path], values: Mapping[str, Any]) -> str:
    """Return the text of the template ``<file>.j2`` from the first of the folders that has it."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    return environment.get_template(f"{file}.j2").render(**values)


def generate(instances: Iterable[Instance], out: Path | None = None) -> list[Path]:
    """Write the files that differ from what their templates make now.

    Parameters
    ----------
    instances : iterable of Instance
        E.g. `pynq_torch.kernels.tables.instances()`.
    out : pathlib.Path, optional
        Default: ``hw/kernels``.

    Returns
    -------
    list of pathlib.Path
        The files that were written.
    """
    written = []
    for path, text in differences(instances, out):
        target = to_write(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        written.append(target)
    return written


def differences(
    instances: Iterable[Instance], out: Path | None = None
) -> Iterator[tuple[Path, str]]:
    """Yield each file that differs from what its template makes now, with the new text."""
    folder = ROOT / "hw" / "kernels" if out is None else out
    for instance in instances:
        for name, text in render(instance).items():
            path = folder / instance.name / name
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                yield path, text
