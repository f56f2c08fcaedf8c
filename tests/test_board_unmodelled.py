"""Parts of a board that have no model: each driver of pynq says so at the call, at once."""

from __future__ import annotations

import importlib
import sys
import wave
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pynq
import pytest
from ip_handoff import Ip, write_design

import pynq_torch
from pynq_torch.board import unmodelled
from pynq_torch.errors import BoardError, RegistersOnly

pytestmark = pytest.mark.timeout(60)

MB_INFO = {
    "ip_name": "iop/mb_bram_ctrl",
    "rst_name": "mb_iop_reset",
    "mbtype": "Pmod",
    "name": "iop",
}


@pytest.fixture
def board() -> Iterator[Any]:
    board = pynq_torch.use_board("csim")
    yield board
    board.close()


@pytest.fixture
def microblaze(board: Any, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The drivers, over a design with a MicroBlaze."""
    module = importlib.import_module("pynq.lib.pynqmicroblaze.pynqmicroblaze")

    memory = {"base_address": 0x4000_0000, "size": 65536, "state": None}
    pl = SimpleNamespace(
        mem_dict={"iop/mb_bram_ctrl": memory},
        gpio_dict={"mb_iop_reset": {"index": 0}},
        interrupt_pins={},
    )
    monkeypatch.setattr(module, "PL", pl)
    return importlib.import_module("pynq.lib")


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (lambda lib: lib.Pmod_OLED(MB_INFO), "pmod_oled.bin, a MicroBlaze program"),
        (lambda lib: lib.Pmod_ADC(MB_INFO), "pmod_adc.bin, a MicroBlaze program"),
        (lambda lib: lib.Arduino_IO(MB_INFO, 0, "in"), "arduino_mailbox.bin, a MicroBlaze program"),
        (lambda lib: lib.PynqMicroblaze(MB_INFO, "/home/me/own.bin"), "own.bin, a MicroBlaze"),
        (lambda lib: lib.MicroblazeRPC(MB_INFO, "int f();"), "C code for iop in MicroblazeRPC"),
        (lambda lib: lib.MicroblazeLibrary(MB_INFO, ["gpio"]), "C code for iop in MicroblazeRPC"),
    ],
)
def test_a_microblaze_is_refused(microblaze: Any, use: Any, says: str) -> None:
    with pytest.raises(BoardError, match=f"{says}.*no model of MicroBlaze.*on a PYNQ-Z2"):
        use(microblaze)


def test_hdmi_is_refused_where_it_starts(board: Any) -> None:
    video = importlib.import_module("pynq.lib._video")
    with pytest.raises(BoardError, match="hdmi_in: .* no model of HDMI video"):
        video._capture({}, 0, 10)
    display = video._display(0, 0, 1)  # made when a driver is bound: the design is usable
    display.stop()
    for call in (display.start, display.frame_width, lambda: display.mode(2)):
        with pytest.raises(BoardError, match="hdmi_out: .* no model of HDMI video"):
            call()


@pytest.fixture
def codec(board: Any, tmp_path: Path) -> Any:
    importlib.import_module("pynq.lib.audio")
    ip = Ip("audio_codec_ctrl", "audio_codec_ctrl_0", 0x43C0_0000, library="user")
    return pynq.Overlay(str(write_design(tmp_path, "codec", [ip]))).audio_codec_ctrl_0


def test_a_design_with_an_audio_codec_is_usable(codec: Any, tmp_path: Path) -> None:
    assert type(codec).__name__ == "AudioADAU1761"
    # Overlays do this in their constructor.
    with pytest.warns(RegistersOnly, match="nothing is played.*config_audio_.*no model of audio"):
        codec.configure()
    with pytest.warns(RegistersOnly, match="select_mic"):
        codec.select_microphone()
    codec.set_volume(20)
    for call in (codec.play, lambda: codec.record(1), lambda: codec.bypass(1)):
        with pytest.raises(BoardError, match=r"libaudio.so, \w+\(\): .* no model of audio"):
            call()
    path = tmp_path / "sound.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(3)
        file.setframerate(48000)
        file.writeframes(bytes(6 * 8))
    with pytest.warns(DeprecationWarning):  # numpy's, of what pynq calls
        codec.load(str(path))
    assert (codec.sample_len, codec.sample_rate) == (8, 48000)


def test_the_older_codec_is_refused_where_a_program_asks_for_it(board: Any, tmp_path: Path) -> None:
    importlib.import_module("pynq.lib")
    ips = [
        Ip("axi_iic", "axi_iic_0", 0x4160_0000),
        Ip("axi_gpio", "axi_gpio_0", 0x4120_0000, {"C_GPIO_WIDTH": 4}),
    ]
    design = pynq.Overlay(str(write_design(tmp_path, "bus", ips)))
    design.axi_gpio_0.channel1.write(3, 15)
    with pytest.raises(RuntimeError, match="Could not send"):  # nobody acknowledges
        design.axi_iic_0.send(0x50, b"a", 1)
    ffi = importlib.import_module("pynq.lib.audio").cffi.FFI()
    with pytest.raises(BoardError, match="AudioDirect .* no model of audio"):
        ffi.cast("unsigned int", 5)
    assert int(ffi.cast("unsigned char", 5)) == 5
    assert ffi.dlopen(None) is not None


def test_everything_is_as_it_was_without_a_board() -> None:
    names = [name for name in sys.modules if name.startswith("pynq.lib")]
    saved = {name: sys.modules.pop(name) for name in names}
    try:
        board = pynq_torch.use_board("csim")
        audio = importlib.import_module("pynq.lib.audio")  # imported later than the board is made
        assert audio.cffi is not sys.modules["cffi"]
        compiler = importlib.import_module("pynq.lib.pynqmicroblaze.compile")
        assert compiler.run is unmodelled._no_compiler
        board.close()
        assert audio.cffi is sys.modules["cffi"]
        assert compiler.run.__module__ == "subprocess"
        assert unmodelled._FINDER not in sys.meta_path
        with pytest.raises(ModuleNotFoundError, match="_video"):
            importlib.import_module("pynq.lib._video")
    finally:
        for name in [name for name in sys.modules if name.startswith("pynq.lib")]:
            del sys.modules[name]
        sys.modules.update(saved)
