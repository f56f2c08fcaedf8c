"""Reads just outside a buffer, as logic made by HLS does them, on both virtual boards."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from helpers import start, wait_done, write_overlay
from pynq import Overlay, allocate

import pynq_torch
from pynq_torch.errors import KernelFault, ReadAheadWarning

PEEK = """
void peek(const int *a, int *out, int at, int n, int poke) {
#pragma HLS INTERFACE m_axi port=a offset=slave bundle=gmem
#pragma HLS INTERFACE m_axi port=out offset=slave bundle=gmem
#pragma HLS INTERFACE s_axilite port=at
#pragma HLS INTERFACE s_axilite port=n
#pragma HLS INTERFACE s_axilite port=poke
#pragma HLS INTERFACE s_axilite port=return
  for (int i = 0; i < n; i++) out[i] = a[at + i];
  if (poke) out[1024] = 1;
}
"""
PAGE_OF_WORDS = 1024


@pytest.mark.parametrize("name", ["csim", "rtl"])
def test_what_memory_holds_behind_a_buffer_is_read_with_one_note(name):
    board = pynq_torch.use_board(name)
    overlay = pynq_torch.load("vadd")
    a, c = allocate(PAGE_OF_WORDS, "f4"), allocate(PAGE_OF_WORDS, "f4")
    a[:] = np.arange(PAGE_OF_WORDS)
    behind = a.device_address + a.nbytes
    np.frombuffer(board.memory.view(behind, 64), "f4")[:] = np.arange(16)

    def run(ahead: int) -> None:
        overlay.vadd.start(a=a, b=a.device_address + 4 * ahead, c=c, n=PAGE_OF_WORDS).wait()

    # Which of the words behind is read first is up to the PC's memcpy, where the kernel has one.
    said = rf"vadd_0 read just outside its buffers: 0x{behind >> 8:06x}[0-3]. .* bytes before"
    with pytest.warns(ReadAheadWarning, match=said):
        run(16)
    assert np.array_equal(c, a + np.r_[a[16:], np.arange(16)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(8)
    with pytest.raises(KernelFault, match="vadd_0 read from memory outside its buffers"):
        run(40)
    run(0)
    assert np.array_equal(c, 2 * a)


@pytest.fixture(scope="module")
def peek(tmp_path_factory):
    folder = tmp_path_factory.mktemp("peek")
    (folder / "kernels/peek").mkdir(parents=True)
    (folder / "kernels/peek/peek.cpp").write_text(PEEK)

    bit = write_overlay(folder, {"peek_0": "peek"}, kernels=folder / "kernels")

    def loaded(**options):
        pynq_torch.use_board("csim", kernels=[folder / "kernels"], **options)
        overlay = Overlay(str(bit))
        unit, a = overlay.peek_0, allocate(PAGE_OF_WORDS, "i4")
        out = allocate(PAGE_OF_WORDS, "i4")
        a[:] = np.arange(1, PAGE_OF_WORDS + 1)

        def run(at: int, n: int, poke: int = 0) -> list[int]:
            registers = unit.register_map
            registers.a_1, registers.out_r_1 = a.device_address, out.device_address
            registers.at, registers.n, registers.poke = at & 0xFFFFFFFF, n, poke
            start(unit)
            wait_done(unit)
            return list(out[:n])

        return run

    yield loaded
    pynq_torch.current_board().close()


@pytest.mark.filterwarnings("ignore::pynq_torch.errors.ReadAheadWarning")
def test_how_far_outside_a_kernel_may_read(peek):
    run = peek()
    for at, n in ((-16, 32), (PAGE_OF_WORDS - 8, 24), (PAGE_OF_WORDS + 15, 1)):
        inside = range(max(at, 0), min(at + n, PAGE_OF_WORDS))
        assert [v for v in run(at, n) if v] == [i + 1 for i in inside]
    for at in (-17, PAGE_OF_WORDS + 16):
        for _ in range(2):  # the page is closed again after each read
            with pytest.raises(KernelFault, match="peek_0 read from memory outside its buffers"):
                run(at, 1)
        assert run(0, 4) == [1, 2, 3, 4]
    with pytest.raises(KernelFault, match="peek_0 wrote to memory outside its buffers"):
        run(0, 1, poke=1)


def test_as_on_silicon_both_pass(peek):
    run = peek(guard="silicon")
    assert run(5, 1) == [6]
    assert run(PAGE_OF_WORDS + 4000, 1) == [0]
    assert run(0, 1, poke=1) == [1]
    with pytest.raises(ValueError, match="guard is 'steel'; expected True, False or \"silicon\""):
        pynq_torch.use_board("csim", guard="steel")
