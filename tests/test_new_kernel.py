"""New kernels of every type through memory and through streams: from `new_kernel` to a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pynq
import pytest
import torch

import pynq_torch
from pynq_torch import hls
from pynq_torch.cli import main
from pynq_torch.errors import KernelError
from pynq_torch.hls.design import build_overlay

pytestmark = [pytest.mark.timeout(280), pytest.mark.usefixtures("closed")]

#: Element type -> numpy's, and the fraction bits of a number.
TYPES: dict[str, tuple[Any, int]] = {
    "float32": (np.float32, 0),
    "int8": (np.int8, 0),
    "int16": (np.int16, 0),
    "int32": (np.int32, 0),
    "ap_fixed<16,4>": (np.int16, 12),
    "ap_fixed<18,6>": (np.int32, 12),
}
FORMS = [(i, t) for i in ("m_axi", "axis") for t in TYPES if (i, t) != ("m_axi", "ap_fixed<18,6>")]
FORMULA = "gain * x + y"
X, Y, GAIN = [1, -2, 3, 0, -7], [2, 2, -3, 5, 1], -2


def name_of(dtype: str) -> str:
    return "k_" + "".join(char for char in dtype if char.isalnum())


def write(root: Path, interface: str, dtype: str) -> str:
    hls.new_kernel(
        name_of(dtype), root, inputs=("x", "y"), scalars=("gain",), formula=FORMULA,
        dtype=dtype, interface=interface,
    )  # fmt: skip
    return name_of(dtype)


def written(root: Path, interface: str) -> list[str]:
    """Write a kernel of each type that goes through an interface."""
    found = [dtype for one, dtype in FORMS if one == interface]
    for dtype in found:
        write(root, interface, dtype)
    return found


def buffer(values: list[int], dtype: str) -> Any:
    numpy_type, fraction = TYPES[dtype]
    made = pynq.allocate(len(values), numpy_type)
    made[:] = np.array(values) * (1 << fraction)
    return made


def gain(dtype: str) -> Any:
    return float(GAIN) if dtype == "float32" else GAIN << TYPES[dtype][1]


def expected(dtype: str) -> list[int]:
    """In steps of the type, wrapped round as it does."""
    bits = int(dtype[9:11]) if "<" in dtype else 32 if dtype == "float32" else int(dtype[3:])
    fraction = TYPES[dtype][1]
    right = [(GAIN * x + y) << fraction for x, y in zip(X, Y, strict=True)]
    return [(n + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1) for n in right]


def loaded(root: Path, kernels: list[str]) -> Any:
    names = [name_of(dtype) for dtype in kernels]
    hls.new_overlay("mine", root, {f"{name}_0": name for name in names})
    built = build_overlay("mine", root=root, out=root)
    pynq_torch.use_board("csim", kernels=[root / "hw" / "kernels"])
    return pynq_torch.load(built / "mine.bit")


def test_arrays_in_memory(tmp_path: Path) -> None:
    kernels = written(tmp_path, "m_axi")
    overlay = loaded(tmp_path, kernels)
    for dtype in kernels:
        x, y, out = buffer(X, dtype), buffer(Y, dtype), buffer([0] * len(X), dtype)
        unit = getattr(overlay, name_of(dtype))
        unit(x, y, out, n=len(X) - 1, gain=gain(dtype))
        assert out.tolist() == [*expected(dtype)[:-1], 0], dtype
        assert unit.last_run.pl_cycles.cycles == len(X) - 1 + 100


def test_streams(tmp_path: Path) -> None:
    kernels = written(tmp_path, "axis")
    overlay = loaded(tmp_path, kernels)
    for at, dtype in enumerate(kernels):
        both, second = (getattr(overlay, f"axi_dma_{2 * at + n}") for n in (0, 1))
        x, y, out = buffer(X, dtype), buffer(Y, dtype), buffer([0] * len(X), dtype)
        unit = getattr(overlay, name_of(dtype))
        for _ in range(2):
            unit.start(gain=gain(dtype))
            second.sendchannel.transfer(y)
            pynq_torch.transfer(both, send=x, recv=out)
            assert out.tolist() == expected(dtype), dtype
            unit.wait()
        assert unit.last_run.number == 2


@pytest.mark.parametrize(("interface", "dtype"), FORMS)
def test_every_form_is_clean(tmp_path: Path, interface: str, dtype: str) -> None:
    name = write(tmp_path, interface, dtype)
    kernel = hls.find_kernel(name, [tmp_path / "hw" / "kernels"])
    assert kernel is not None
    assert hls.lint(kernel.source, name) == []
    assert hls.read_interface(kernel.source, name).warnings == ()
    found = hls.estimate(kernel.source, name)
    assert (found.loops[0].ii, found.warnings) == (1, ())
    assert found.latency[1] is not None
    said = hls.run_testbench(kernel, sanitize=(interface, dtype) == ("m_axi", "int32")).output
    assert said.count("PASS") == (12 if dtype == "float32" else 8) and "FAIL" not in said


@pytest.mark.parametrize(
    ("interface", "dtype"),
    [("m_axi", "float32"), ("m_axi", "ap_fixed<8,3>"), ("axis", "int8"), ("axis", "ap_fixed<8,3>")],
)
def test_a_wrong_formula_fails_its_testbench(tmp_path: Path, interface: str, dtype: str) -> None:
    hls.new_kernel(
        "wrong", tmp_path, inputs=("a", "b"), formula="a - b", golden="a + b", dtype=dtype,
        interface=interface,
    )  # fmt: skip
    kernel = hls.find_kernel("wrong", [tmp_path / "hw" / "kernels"])
    assert kernel is not None
    with pytest.raises(AssertionError, match="first wrong (index|beat) [01]: "):
        hls.run_testbench(kernel)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dtype": "int64"}, r"'int64'; expected float32, int8, int16, int32 or ap_fixed<W,I>"),
        ({"dtype": "ap_fixed<40,8>"}, "with 2 <= W <= 32 and 1 <= I <= W"),
        ({"dtype": "ap_fixed<8,9>"}, "with 2 <= W <= 32 and 1 <= I <= W"),
        ({"dtype": "ap_fixed<8,0>"}, "with 2 <= W <= 32 and 1 <= I <= W"),
        ({"dtype": np.int32}, "expected float32, int8"),
        ({"dtype": "ap_fixed<18,6>"}, "expected W of 8, 16 or 32 there, or interface='axis'"),
        ({"interface": "stream"}, "interface 'stream'; expected m_axi or axis"),
        ({"scalars": ("x",)}, "names that differ"),
        ({"scalars": ("value",)}, "'value' is no name"),
        ({"inputs": ("i",)}, "'i' is no name"),
        ({"inputs": ("k",)}, "names that differ"),
    ],
)
def test_what_makes_no_sense(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(KernelError, match=said):
        hls.new_kernel("k", tmp_path, **{"inputs": ("x",), "formula": "x", **options})
    assert not list(tmp_path.iterdir())


def test_the_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    new = ["hls", "new", "fir", "--inputs", "x", "--formula", "gain * x", "--scalars", "gain"]
    assert main([*new, "--type", "int32", "--interface", "axis", "--output", "y"]) == 0
    assert main(["overlay", "new", "mine", "fir_0=fir", "--clock", "50"]) == 0
    assert capsys.readouterr().out.split() == ["hw/kernels/fir", "hw/overlays/mine/overlay.toml"]
    text = Path("hw/overlays/mine/overlay.toml").read_text()
    assert "fir_0.y -> axi_dma_0.S_AXIS_S2MM" in text and "clock_mhz = 50" in text
    about = json.loads(Path("hw/kernels/fir/description.json").read_text())
    assert about["latency"]["symbols"].keys() == {"beats"}
    assert main([*new, "--type", "int7"]) == 1
    assert "expected float32, int8" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["overlay", "new", "other", "fir_0"])
    assert "'fir_0': expected UNIT=KERNEL" in capsys.readouterr().err


def test_a_call_of_a_stream_kernel_says_which_dma(tmp_path: Path) -> None:
    hls.new_kernel(
        "fir", tmp_path, inputs=("x",), scalars=("gain",), formula="gain * x", dtype="int32",
        interface="axis",
    )  # fmt: skip
    hls.new_kernel(
        "add", tmp_path, inputs=("x", "y"), formula="x + y", dtype="int32", interface="axis"
    )
    hls.new_overlay("mine", tmp_path, {"fir_0": "fir", "add_0": "add"})
    built = build_overlay("mine", root=tmp_path, out=tmp_path)
    pynq_torch.use_board("csim", kernels=[tmp_path / "hw" / "kernels"])
    overlay = pynq_torch.load(built / "mine.bit")
    line = r"overlay\.fir_0\.start\(\.\.\.\); pynq_torch\.transfer\(overlay\.axi_dma_0, send=x, rec"
    x = pynq.allocate(4, np.int32)
    for values in (x, np.ones(4), [1, 2], torch.ones(4)):
        # An address or a list in the register of a number would start a run that waits for ever.
        with pytest.raises(TypeError, match=rf"gain is a number in a register; .*{line}"):
            overlay.fir(values)
    with pytest.raises(TypeError, match=rf"takes 1 arguments; found 2\. .*{line}"):
        overlay.fir(x, 3)
    with pytest.raises(TypeError, match=rf"has no argument 'x' to write\. .*{line}"):
        overlay.fir(x=x, gain=3)
    two = (
        r"add_0\.start\(\); overlay\.axi_dma_2\.sendchannel\.transfer\(x\); "
        r"pynq_torch\.transfer\(overlay\.axi_dma_1, send=x, recv=y\)\."
    )
    with pytest.raises(TypeError, match=two):
        overlay.add(x, x)
