"""What breaks a board from the side: forks, closed boards, Ctrl-C, threads, damaged files."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pynq
import pytest
import torch
from helpers import HW_KERNELS, KERNELS, eventually, overlay_of, start, wait_done, write_overlay

import pynq_torch
from pynq_torch import buffers
from pynq_torch.board.engine_faults import sanitizer_report
from pynq_torch.board.interrupts import deferred_interrupt
from pynq_torch.errors import BoardError, BufferFreed, HandoffError, KernelFault
from pynq_torch.hls import cache


@pytest.fixture
def board():
    found = pynq_torch.use_board("csim")
    yield found
    found.close()


def in_child(work) -> str:
    """Return what `work()` says in a forked child."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = str(work())
        except BaseException as error:  # noqa: BLE001 - a child says all
            text = f"{type(error).__name__}: {error}"
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as answer:
        return answer.read()


def test_a_forked_child_cannot_change_its_parents_memory(board):
    vadd = pynq_torch.load("vadd").vadd
    x = torch.ones(100)
    buffer = pynq.allocate(100, "i4")
    buffer[:] = 3

    def free_and_allocate() -> None:
        buffer.freebuffer()
        pynq.allocate(100, "i4")[:] = 9

    assert re.match(rf"BoardError: .*process {os.getpid()}, .*forked", in_child(free_and_allocate))
    assert re.match(r"BoardError: .*forked.*use_board", in_child(lambda: vadd(x, x)))
    assert "forked" in in_child(lambda: pynq_torch.load("vadd"))

    def own_board() -> str:
        pynq_torch.use_board("csim")
        return str(float(pynq_torch.load("vadd").vadd(x, x)[7]))

    assert in_child(own_board) == "2.0"
    assert (np.asarray(buffer) == 3).all()
    assert (vadd(x, x) == 2).all()


def test_memory_of_a_former_board_is_copied_or_refused(board):
    tensor = buffers.empty_tensor(100)
    tensor.fill_(2)
    buffer = pynq.allocate(100, "f4")
    pynq_torch.load("vadd")
    registers = pynq.MMIO(0x40000000, 0x1000)
    pynq_torch.use_board("csim")
    vadd = pynq_torch.load("vadd").vadd
    assert (vadd(tensor, tensor) == 4).all()
    with pytest.raises(BufferFreed, match=r"float32\[100\].*board that was closed"):
        _ = buffer.physical_address
    with pytest.raises(BufferFreed, match="board that was closed"):
        vadd.start(a=buffer, b=buffer, c=buffer, n=100)
    assert not buffer.any()
    with pytest.raises(BoardError, match="0x40000000 belongs to a board that was closed"):
        registers.read(0)
    with pytest.raises(BoardError, match="use_board"):
        pynq.allocate(4, target=board)
    buffer.freebuffer()
    pynq_torch.current_board().close()


def test_ctrl_c_waits_for_the_end_of_what_must_not_be_half_done():
    steps = []
    with pytest.raises(KeyboardInterrupt), deferred_interrupt():
        os.kill(os.getpid(), signal.SIGINT)
        steps.append("whole")
    assert steps == ["whole"]
    with deferred_interrupt():
        pass  # nothing came: nothing is raised


def test_threads_that_load_overlays_do_not_get_into_each_others_way(board):
    errors = []

    def load(name: str) -> None:
        try:
            for _ in range(4):
                pynq_torch.load(name)
        except Exception as error:  # noqa: BLE001 - none is expected
            errors.append(error)

    for name in ("vadd", "stream", "gemm"):
        pynq_torch.load(name)  # built before the race
    threads = [threading.Thread(target=load, args=(n,)) for n in ("vadd", "stream", "gemm")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not errors
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    assert pynq_torch.load("vadd").vadd(torch.ones(3), torch.ones(3)).tolist() == [2, 2, 2]
    assert len(children) <= 8


def test_an_output_that_overlaps_an_input_is_computed_beside_it(board):
    vadd = pynq_torch.load("vadd").vadd
    n = 20000
    memory = buffers.empty_tensor(n + 1)
    memory.copy_(torch.arange(n + 1.0))
    expected = memory[:n] * 2
    assert torch.equal(vadd(memory[:n], memory[:n], out=memory[1:]), expected)
    assert torch.equal(vadd(memory[1:], memory[1:], out=memory[1:]), expected * 2)


def test_a_product_written_over_its_input(board):
    gemm = pynq_torch.load("gemm").gemm
    out = buffers.empty_tensor((128, 600), torch.int32)
    a = out.view(torch.int8)[:, :600]
    a.copy_(torch.randint(-128, 127, (128, 600), dtype=torch.int8))
    b = torch.randint(-128, 127, (600, 600), dtype=torch.int8)
    expected = a.int() @ b.int()
    assert torch.equal(gemm(a, b, out=out), expected)


def test_a_kernel_that_was_given_comes_before_the_projects_own(tmp_path):
    shutil.copytree(HW_KERNELS / "vadd", tmp_path / "deep" / "vadd")
    board = pynq_torch.use_board("csim", kernels=[tmp_path])
    pynq_torch.load("vadd")
    assert board.cus["vadd_0"].interface.source.is_relative_to(tmp_path)
    board.close()


EVIL = """
#include <cstdlib>
#include <unistd.h>
void evil(int *data, int n, int sin) {
#pragma HLS INTERFACE m_axi port=data bundle=gmem offset=slave
#pragma HLS INTERFACE s_axilite port=data bundle=control
#pragma HLS INTERFACE s_axilite port=n bundle=control
#pragma HLS INTERFACE s_axilite port=sin bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
    if (sin == 1) std::exit(3);
    if (sin == 2 && fork() == 0)
        for (;;) pause();
    if (sin == 3) data[n] = 1;
    for (int i = 0; i < n; ++i) data[i] += 1;
}
"""


def _processes(engine: Path) -> int:
    found = 0
    for entry in Path("/proc").glob("[0-9]*/exe"):
        try:
            found += Path(os.readlink(entry)) == engine
        except OSError:  # it ended meanwhile, or is another user's
            continue
    return found


@pytest.mark.parametrize("sanitize", [False, True])
def test_a_kernel_that_exits_forks_or_overruns(tmp_path, sanitize):
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil" / "evil.cpp").write_text(EVIL)
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "k").mkdir()
    shutil.copytree(tmp_path / "evil", folder / "k" / "evil")
    overlay = overlay_of(folder, {"evil_0": "evil"}, [folder / "k"], sanitize=sanitize)
    board = pynq_torch.current_board()
    buffer = pynq.allocate(100, "i4")

    def run(sin: int) -> None:
        registers = overlay.evil_0.register_map
        registers.data_1, registers.n, registers.sin = buffer.physical_address, 100, sin
        start(overlay.evil_0)
        wait_done(overlay.evil_0)

    with pytest.raises(KernelFault, match=r"evil_0.*exit status 3.*must return, not call exit"):
        run(1)
    says = "sanitizer: .*use-after-poison(.|\n)*evil.cpp:13" if sanitize else "past the end"
    with pytest.raises(KernelFault, match=says):
        run(3)
    buffer[:] = 0
    run(2)
    assert buffer[99] == 1
    engine = board.cus["evil_0"].engine.executable
    assert _processes(engine) == 2
    board.close()
    # The kernel's own child is nobody's to wait for: it goes a moment after the signal.
    eventually(lambda: _processes(engine) == 0)


def test_a_report_is_cut_to_the_lines_of_the_kernel():
    printed = (
        "hello\nk.cpp:3:5: runtime error: index 4 out of bounds\n    #0 0x1 in k(int*) k.cpp:3\n"
        "    #1 0x2 in void pynq_torch::invoke<int> engine.hpp:630\nmore"
    )
    found = sanitizer_report(printed)
    assert found == (
        "k.cpp:3:5: runtime error: index 4 out of bounds",
        ["#0 0x1 in k(int*) k.cpp:3"],
    )
    assert sanitizer_report("a kernel that prints") is None


@pytest.mark.parametrize(
    "old, new",
    [
        (r'BASEVALUE="[^"]*"', 'BASEVALUE="0xZZ"'),
        (r'HIGHVALUE="[^"]*"', 'HIGHVALUE=""'),
        (r' FULLNAME="[^"]*"', ""),
        (r' INSTANCE="[^"]*"', ""),
        (r' DIR="[^"]*"', ""),
        ('^<\\?xml version="1.0" encoding="[^"]*"', '<?xml version="1.0" encoding="FOO"'),
        ('^<\\?xml version="1.0" encoding="[^"]*"', '<?xml version="1.0" encoding="Shift_JIS"'),
    ],
)
def test_a_damaged_handoff_is_named(board, tmp_path, old, new):
    bit = write_overlay(tmp_path, {"nop_0": "nop"}, kernels=KERNELS)
    hwh = bit.with_suffix(".hwh")
    hwh.write_text(re.sub(old, new, hwh.read_text()))
    with pytest.raises(HandoffError, match=rf"{hwh.name}.*Copy the .hwh"):
        pynq.Overlay(str(bit))


def test_a_pc_that_gives_no_memory_is_named():
    script = (
        "import resource, pynq_torch\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "pynq_torch.use_board('csim')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "BoardError: this PC gives the virtual board no 512 MB of memory" in done.stderr


def test_options_that_cannot_be(tmp_path):
    for value in (-1, 0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="hang_timeout_s is .*expected a number"):
            pynq_torch.use_board("csim", hang_timeout_s=value)
    board = pynq_torch.use_board("csim", kernels=str(tmp_path))
    assert board.kernel_paths[0] == tmp_path
    board.close()


@pytest.mark.parametrize("text", ["", "{}", "[{}]", '[1, {"name": "x"}]', "[null"])
def test_a_damaged_index_of_the_cache_means_building_again(tmp_path, monkeypatch, text):
    monkeypatch.setenv("PYNQ_TORCH_CACHE", str(tmp_path))
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "key.json").write_text(text)
    assert cache.find("key") is None
