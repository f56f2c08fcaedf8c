"""Vivado's hardware exports load as pynq loads them, and leave nothing behind."""

from __future__ import annotations

import contextlib
import gc
import json
import shutil
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from pynq import Overlay, allocate

import pynq_torch
from pynq_torch.board import xsa
from pynq_torch.errors import BitstreamWarning, HandoffError

VADD = Path(__file__).resolve().parents[1] / "bitstreams" / "vadd"
SYSDEF = """<Project>
  <File Type="HW_HANDOFF" Name="top.hwh" BD_TYPE="DEFAULT_BD"/>
  <File Type="BIT" Name="wrapper.bit"/>
</Project>"""
WHOLE: dict[str, bytes | None] = {
    "xsa.json": json.dumps({"files": []}).encode(),
    "xsa.xml": b"<xsa/>",
    "sysdef.xml": SYSDEF.encode(),
    "top.hwh": (VADD / "vadd.hwh").read_bytes(),
    "wrapper.bit": (VADD / "vadd.bit").read_bytes(),
}


@pytest.fixture(params=["csim", "rtl"])
def board(request, closed):
    return pynq_torch.use_board(request.param)


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Give a folder of its own for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def export(folder, **changed):
    """Write an export with some files changed, or left out where they are None."""
    path = folder / "design.xsa"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in (WHOLE | {k.replace("_", "."): v for k, v in changed.items()}).items():
            if data is not None:
                archive.writestr(name, data)
    return path


def test_a_bitstream_in_it_that_a_board_would_refuse(closed, tmp_path, temporary):
    pynq_torch.use_board("csim")
    with pytest.warns(BitstreamWarning, match=r"wrapper\.bit: no \.bit: it begins with 3c 68 74"):
        Overlay(str(export(tmp_path, wrapper_bit=b"<html>")))


@pytest.mark.parametrize("load", [Overlay, pynq_torch.load])
def test_an_export_loads_and_runs(board, tmp_path, temporary, load):
    overlay = load(str(export(tmp_path)))
    a, b, c = (allocate(16, "f4") for _ in range(3))
    a[:], b[:] = np.arange(16), 100
    for buffer in (a, b):
        buffer.flush()
    vadd = overlay.vadd_0
    for offset, value in ((0x10, a), (0x1C, b), (0x28, c)):
        vadd.write(offset, value.device_address)
    vadd.write(0x34, 16)
    vadd.write(0x00, 1)
    pynq_torch.wait(vadd)
    c.invalidate()
    assert c.tolist() == [100.0 + i for i in range(16)]


def test_what_pynq_extracts_is_deleted(tmp_path, temporary):
    metadata, handoff = xsa.read_archive(export(tmp_path))
    assert handoff.parent.parent == temporary
    assert handoff.read_bytes() == WHOLE["top.hwh"]
    del metadata
    gc.collect()
    assert not list(temporary.iterdir())
    metadata, handoff = xsa.read_archive(export(tmp_path))
    shutil.rmtree(handoff.parent)  # somebody tidied up: nothing is said
    del metadata
    gc.collect()


@pytest.mark.parametrize(
    "changed, says",
    [
        ({"sysdef_xml": None}, "has no sysdef.xml: it is no export of an implemented design"),
        ({"xsa_json": None, "xsa_xml": None}, "has no xsa.json and no xsa.xml"),
        ({"sysdef_xml": SYSDEF.replace('Type="BIT"', 'Type="X"').encode()}, "has no bitstream"),
        ({"sysdef_xml": b"<Project/>"}, "pynq's own parser fails on design.xsa"),
        ({"sysdef_xml": b"nothing"}, "pynq's own parser fails on design.xsa: ParseError"),
        ({"xsa_json": b"{"}, "pynq's own parser fails on design.xsa: JSONDecodeError"),
        ({"top_hwh": None}, "top.hwh not found in the XSA archive"),
        ({"top_hwh": b"<a/>"}, "pynq's own parser fails|no hardware handoff"),
    ],
)
def test_a_damaged_export_is_refused(tmp_path, closed, changed, says):
    pynq_torch.use_board("csim")
    with pytest.raises(HandoffError, match=says):
        Overlay(str(export(tmp_path, **changed)))


def test_what_is_no_archive_is_refused(tmp_path, closed):
    pynq_torch.use_board("csim")
    path = export(tmp_path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(HandoffError, match=r"design.xsa is no zip archive \(File is not a zip"):
        pynq_torch.load(path)


@pytest.mark.parametrize("more", [0, 1])
def test_an_archive_of_any_size_is_not_extracted(tmp_path, temporary, more):
    path = export(tmp_path)
    with zipfile.ZipFile(path) as archive:
        others = sum(entry.file_size for entry in archive.infolist()[:-1])
    data = bytearray(path.read_bytes())
    at = data.rindex(b"PK\1\2") + 24  # the size of the last file, as the archive's list has it
    data[at : at + 4] = ((512 << 20) - others + more).to_bytes(4, "little")
    path.write_bytes(data)
    said = "has 536,870,913 bytes of files; expected at most 536,870,912"
    with pytest.raises(HandoffError, match=said) if more else contextlib.nullcontext():
        xsa.read_archive(path)


def test_an_export_beside_a_bitstream_of_its_name(tmp_path, closed):
    # There pynq on a board raises UnknownInputFileExtension.
    pynq_torch.use_board("csim")
    path = export(tmp_path)
    for suffix in (".bit", ".hwh"):
        path.with_suffix(suffix).write_bytes((VADD / f"vadd{suffix}").read_bytes())
    with pytest.raises(HandoffError, match=r"design.xsa is beside design.bit.* Load design.xsa"):
        Overlay(str(path.with_suffix(".bit")))
    assert "vadd_0" in Overlay(str(path)).ip_dict
