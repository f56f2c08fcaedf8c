"""Simulation images, manifests, and the refusal on real hardware."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from pynq_torch.cli import main
from pynq_torch.errors import BitstreamError, HandoffError
from pynq_torch.hls.design import check_bitstream, is_simulation_image
from pynq_torch.hls.design.build import (
    build_overlay,
    generate,
    import_overlay,
    overlay_names,
    sources_of,
)
from pynq_torch.hls.design.image import MARKER, read_bit_header, write_simulation_image
from pynq_torch.paths import ROOT

SYNC = bytes.fromhex("aa995566")


def real_image(name: str) -> bytes:
    """A .bit with frames: the image's header, then the sync word."""
    frames = b"\xff" * 32 + SYNC + bytes(64)
    image = write_simulation_image(name)
    return image[: -len(MARKER) - 4] + len(frames).to_bytes(4, "big") + frames


@pytest.mark.parametrize("name", overlay_names())
def test_committed_images(name: str) -> None:
    path = ROOT / "bitstreams" / name / f"{name}.bit"
    manifest = json.loads(path.with_name("manifest.json").read_text())
    assert is_simulation_image(path) == (manifest["kind"] == "simulation image")
    header = read_bit_header(path.read_bytes())
    assert header.part == "7z020clg400"
    assert header.design.split(";")[0] == name
    assert len(path.read_bytes()) == header.offset + header.nbytes
    for file, digest in manifest["files"].items():
        assert hashlib.sha256(path.with_name(file).read_bytes()).hexdigest() == digest
    for source in manifest["sources"]:
        assert (ROOT / source).is_file()


def test_refusal_says_how_to_build_the_real_one(tmp_path: Path) -> None:
    path = tmp_path / "gemm.bit"
    path.write_bytes(write_simulation_image("gemm"))
    check_bitstream(path, real_hardware=False)
    with pytest.raises(BitstreamError, match="make -C hw overlays OVERLAYS=gemm"):
        check_bitstream(path, real_hardware=True)


def test_a_real_bitstream_and_a_raw_bin_pass(tmp_path: Path) -> None:
    path = tmp_path / "gemm.bit"
    path.write_bytes(real_image("gemm"))
    check_bitstream(str(path), real_hardware=True)
    raw = tmp_path / "gemm.bin"
    raw.write_bytes(b"\xff" * 32 + SYNC)
    check_bitstream(raw, real_hardware=True)
    raw.write_bytes(b"")
    assert not is_simulation_image(raw)


def test_no_sync_word_in_an_image() -> None:
    assert SYNC not in write_simulation_image("any")


@pytest.mark.parametrize("length", [13, 14, 30, 60, 90])
def test_a_cut_image_is_damaged(length: int, tmp_path: Path) -> None:
    path = tmp_path / "cut.bit"
    path.write_bytes(write_simulation_image("gemm")[:length])
    with pytest.raises(BitstreamError, match="damaged"):
        is_simulation_image(path)


def test_what_is_no_bit() -> None:
    with pytest.raises(BitstreamError, match=r"no \.bit"):
        read_bit_header(b"PK\x03\x04")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BitstreamError, match="overlay build"):
        check_bitstream(tmp_path / "x.bit", real_hardware=False)


def test_building_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    folders = [build_overlay("gemm", out=tmp_path / part) for part in "ab"]
    first, second = ({p.name: p.read_bytes() for p in f.iterdir()} for f in folders)
    assert first == second


def test_sources_follow_quoted_includes() -> None:
    names = {path.name for path in sources_of(ROOT / "hw/kernels/gemm_lut/gemm_lut.cpp")}
    shared = {f"gemm_{part}.hpp" for part in ("core", "epilogue", "memory", "store")}
    assert names == {"gemm_lut.cpp", "gemm_lut.hpp", *shared}


def test_unknown_overlay() -> None:
    with pytest.raises(HandoffError, match="gemm_dual"):
        generate("gem")


def test_taking_over_what_vivado_built(tmp_path: Path) -> None:
    built = tmp_path / "result"
    built.mkdir()
    with pytest.raises(BitstreamError, match="did Vivado finish"):
        import_overlay("vadd", built, {}, out=tmp_path)
    (built / "vadd.hwh").write_bytes((ROOT / "bitstreams/vadd/vadd.hwh").read_bytes())
    (built / "vadd.bit").write_bytes(write_simulation_image("vadd"))
    with pytest.raises(BitstreamError, match="simulation image"):
        import_overlay("vadd", built, {}, out=tmp_path)
    (built / "vadd.bit").write_bytes(real_image("vadd"))
    folder = import_overlay("vadd", built, {"vivado": "v2023.2"}, out=tmp_path)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["kind"] == "vivado"
    assert manifest["tools"] == {"vivado": "v2023.2"}
    assert not is_simulation_image(folder / "vadd.bit")


OWN_KERNEL = """
void triple(const float* x, float* y, int n) {
#pragma HLS INTERFACE m_axi port=x bundle=gmem offset=slave
#pragma HLS INTERFACE m_axi port=y bundle=gmem offset=slave
#pragma HLS INTERFACE s_axilite port=x
#pragma HLS INTERFACE s_axilite port=y
#pragma HLS INTERFACE s_axilite port=n
#pragma HLS INTERFACE s_axilite port=return
    for (int i = 0; i < n; ++i) y[i] = 3 * x[i];
}
"""


def test_overlays_of_another_folder(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    build = ["overlay", "build", "--root", "own"]
    assert main(build) == 1
    assert "own has no hw/overlays" in capsys.readouterr().err
    (tmp_path / "hw" / "overlays" / "pipe").mkdir(parents=True)
    assert main(["overlay", "build", "--root", str(tmp_path)]) == 1
    assert "hw/overlays has no overlay" in capsys.readouterr().err
    os.mkfifo(tmp_path / "hw" / "overlays" / "pipe" / "overlay.toml")
    assert main(["overlay", "build", "--root", str(tmp_path)]) == 1
    assert "pipe/overlay.toml is a folder, device, pipe or" in capsys.readouterr().err
    for folder, file, content in (
        ("kernels/triple", "triple.cpp", OWN_KERNEL),
        (
            "overlays/mine",
            "overlay.toml",
            'summary = "three times"\n[instances.triple_0]\nkernel = "triple"\n'
            'memory = { gmem = "HP0" }\n',
        ),
    ):
        (tmp_path / "own/hw" / folder).mkdir(parents=True)
        (tmp_path / "own/hw" / folder / file).write_text(content)
    assert main([*build, "vadd"]) == 1
    assert "there are mine" in capsys.readouterr().err
    assert main(["overlay", "list", "--root", "own"]) == 0
    assert "three times" in capsys.readouterr().out
    assert main(build) == 0
    manifest = json.loads((tmp_path / "own/bitstreams/mine/manifest.json").read_text())
    assert set(manifest["sources"]) == {
        "hw/overlays/mine/overlay.toml",
        "hw/kernels/triple/triple.cpp",
    }
    assert main(["overlay", "scripts", "--root", "own", "--out", "made"]) == 0
    assert "triple_0" in (tmp_path / "made/mine.tcl").read_text()


@pytest.mark.parametrize(
    ("there", "said"),
    [
        (("vadd/rtl/vadd.sv", "other/other.cpp"), "registers and ports are derived"),
        (("other/other.cpp", "only_verilog/rtl/a.sv"), "there are other\n"),
        ((), "there are none\n"),
    ],
)
def test_a_kernel_without_cpp_says_what_is_needed(
    tmp_path: Path, capsys, there: tuple[str, ...], said: str
) -> None:
    overlay = tmp_path / "hw/overlays/mine/overlay.toml"
    for path in (overlay, *(tmp_path / "hw/kernels" / name for name in there)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    overlay.write_text('[instances.vadd_0]\nkernel = "vadd"\n')
    assert main(["overlay", "build", "--root", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert "'vadd' has no hw/kernels/vadd/vadd.cpp" in error and said in error
    assert "vadd" not in error.partition("there are")[2]  # it is not there, so it is not listed
    assert (".hwh of your own" in error) == (said == "registers and ports are derived")
