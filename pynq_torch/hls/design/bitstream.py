"""The generated Tcl run by Vivado, and what running a tool of others has in common."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from pynq_torch.errors import BitstreamError
from pynq_torch.paths import ROOT, to_write

from .build import generate, import_overlay

__all__ = ["build_vivado", "run_tool"]

_TIMEOUT_S = 6 * 3600.0
_BATCH = ("vivado", "-mode", "batch", "-nojournal", "-source")


def build_vivado(
    name: str,
    *,
    root: Path | None = None,
    out: Path | None = None,
    build: Path | None = None,
    rtl: Mapping[str, tuple[Path, Sequence[Path]]] | None = None,
) -> Path:
    """Build the real bitstream of an overlay by Vivado, of kernels that Vitis HLS has packaged.

    Parameters
    ----------
    name : str
        The overlay.
    root, out : pathlib.Path, optional
        As for :func:`pynq_torch.hls.design.build.build_overlay`.
    build : pathlib.Path, optional
        Where the packaged kernels are and Vivado's project goes; by default ``hw/build``.
    rtl : mapping of str to tuple, optional
        Kernels that Vivado packages itself, from RTL: the folder with ``package.tcl`` of each, and
        the project's files in it (`pynq_torch.board.rtl.vivado_ip.write_ips`).

    Returns
    -------
    pathlib.Path
        The folder with ``<name>.bit``, ``<name>.hwh`` and ``manifest.json``.

    Raises
    ------
    BitstreamError
        Vivado or a packaged kernel is missing, or Vivado fails; it does where timing is not met.
    """
    if shutil.which("vivado") is None:
        raise BitstreamError(
            "vivado is not on the PATH: AMD's Vivado, 2022.1 or later, is at "
            "https://www.xilinx.com/support/download.html. Install it and source its settings64.sh"
        )
    root = root or ROOT
    generated = generate(name, root)
    build = build or to_write(root / "hw" / "build")
    packaged, project, result = build / "hls" / "ip", build / "vivado" / name, build / "result"
    cells = generated.design.kernels
    rtl = rtl or {}
    kernels = [kind for kind in dict.fromkeys(cell.kind for cell in cells) if kind not in rtl]
    _check_packaged(packaged, kernels)
    project.parent.mkdir(parents=True, exist_ok=True)
    script = build / "scripts" / f"{name}.tcl"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(generated.tcl, encoding="utf-8")
    for folder, _ in rtl.values():
        run_tool([*_BATCH, folder / "package.tcl"], folder, _TIMEOUT_S)
    # A list in Tcl. One folder a kernel: of some there are both, of one name.
    folders = [packaged / kernel for kernel in kernels] + [folder for folder, _ in rtl.values()]
    repository = " ".join(f"{{{folder}}}" for folder in folders)
    words = [*_BATCH, script, "-tclargs", repository, project, result]
    run_tool(words, project.parent, _TIMEOUT_S)
    version = run_tool(["vivado", "-version"], project.parent, 600).splitlines()[0]
    used = {kernel: files for kernel, (_, files) in rtl.items()}
    return import_overlay(name, result, {"vivado": version}, root=root, out=out, rtl=used)


def _check_packaged(packaged: Path, kernels: Sequence[str]) -> None:
    missing = [k for k in kernels if not (packaged / k / "component.xml").is_file()]
    if missing:
        raise BitstreamError(
            f"{packaged} has no packaged {', '.join(missing)}; on a machine with Vitis HLS run: "
            f'make -C hw kernels KERNELS="{" ".join(missing)}"'
        )


def run_tool(command: Sequence[object], folder: Path, timeout_s: float) -> str:
    """Run a program in `folder` and return what it says.

    Raises
    ------
    BitstreamError
        It fails or takes longer than `timeout_s` seconds; the message has its last lines.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words, cwd=folder, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise BitstreamError(f"{words[0]} took more than {timeout_s:.0f} s") from error
    said = done.stdout + done.stderr
    if done.returncode:
        last = "\n".join(said.strip().splitlines()[-12:])
        raise BitstreamError(f"{words[0]} failed, exit status {done.returncode}:\n{last}")
    return said
