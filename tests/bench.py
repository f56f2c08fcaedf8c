"""``make bench``: the project's speed targets, each as a ratio or a figure with its conditions.

No test asserts a time; this prints them. A figure is `measured` on this PC, or `cycles` of RTL.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
NOP = ROOT / "tests" / "kernels"


@dataclass(frozen=True)
class Figure:
    """One line of the result."""

    what: str
    value: float
    unit: str
    target: float
    conditions: str
    least: bool = False
    kind: str = "measured"

    @property
    def ratio(self) -> float:
        """Value over target: at most 1 where it is met, at least 1 where ``least``."""
        return self.value / self.target


def best(run: Callable[[], object], repeat: int = 5, calls: int = 1) -> float:
    """Return the median over ``repeat`` of the seconds a call takes."""
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        for _ in range(calls):
            run()
        times.append((time.perf_counter() - begin) / calls)
    return median(times)


def import_cost() -> Figure:
    """Time of ``import pynq_torch`` after ``import torch``, each in a fresh interpreter."""
    program = (
        "import torch, time; t = time.perf_counter(); import pynq_torch; "
        "print(time.perf_counter() - t)"
    )
    # Otherwise `import torch` has imported it already, for its device.
    alone = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    command = [sys.executable, "-c", program]
    times = [
        float(subprocess.run(command, capture_output=True, check=True, env=alone).stdout)
        for _ in range(5)
    ]
    return Figure(
        "import pynq_torch beyond import torch",
        median(times) * 1e3,
        "ms",
        150,
        "no autoload; its parts load when used; of 5",
    )


def board_figures() -> list[Figure]:
    """Overlay load, MMIO, starts."""
    from pynq import Overlay

    import pynq_torch

    pynq_torch.use_board("csim", kernels=[NOP])
    bit = str(ROOT / "bitstreams" / "vadd" / "vadd.bit")
    Overlay(bit)
    load = best(lambda: Overlay(bit), 11)
    overlay = pynq_torch.load("vadd")
    ip = overlay.ip_dict and overlay.vadd_0
    mmio = getattr(ip, "mmio", None) or ip.ip.mmio
    read = best(lambda: mmio.read(0x10), 7, 2000)
    write = best(lambda: mmio.write(0x10, 1), 7, 2000)
    return [
        Figure("Overlay() of vadd", load * 1e3, "ms", 100, "pynq imported, kernels built, of 11"),
        Figure("MMIO read", read * 1e6, "us", 5, "register of an HLS kernel, 2000 calls, of 7"),
        Figure("MMIO write", write * 1e6, "us", 5, "register of an HLS kernel, 2000 calls, of 7"),
    ]


def start_overhead() -> Figure:
    """AP_START to AP_DONE of a kernel that does nothing, polled as pynq programs do."""
    from helpers import overlay_of  # tests/helpers.py

    with tempfile.TemporaryDirectory() as folder:
        overlay = overlay_of(Path(folder), {"nop_0": "nop"}, [NOP])
        mmio = overlay.nop_0.mmio

        def run() -> None:
            mmio.write(0, 1)
            while not mmio.read(0) & 2:
                pass

        run()
        seconds = best(run, 9, 500)
    return Figure(
        "start to done of an empty kernel",
        seconds * 1e6,
        "us",
        150,
        "polling AP_DONE, 500 starts, of 9",
    )


def csim_slowdown() -> Figure:
    """The gemm kernel in its engine against the same function called from C++."""
    import torch

    import pynq_torch
    from pynq_torch import buffers, hls
    from pynq_torch.torch_device.exact import int_mm

    size = 256
    kernel = hls.find_kernel("gemm", [ROOT / "hw" / "kernels"])
    with tempfile.TemporaryDirectory() as folder:
        direct = direct_seconds(kernel.source, Path(folder), size)
    board = pynq_torch.use_board("csim")
    overlay = pynq_torch.load("gemm")
    torch.manual_seed(0)
    a, b = (buffers.empty_tensor((size, size), torch.int8).random_(-128, 128) for _ in range(2))
    c = buffers.empty_tensor((size, size), torch.int32)
    times = []
    for _ in range(15):
        overlay.gemm(a, b, out=c)
        times.append(board.cus["gemm_0"].last_run.seconds)
    assert torch.equal(c, int_mm(a, b))
    return Figure(
        "csim gemm against a C++ call",
        min(times) / direct,
        "x",
        1.05,
        f"{size}^3 int8, fastest of 15 each",
    )


def direct_seconds(source: Path, folder: Path, size: int) -> float:
    """Return the fastest of 15 calls of gemm from a plain C++ program, same flags as the engine."""

    from pynq_torch import hls

    program = folder / "direct.cpp"
    program.write_text(
        f'#include "{source}"\n'
        "#include <algorithm>\n#include <chrono>\n#include <cstdio>\n#include <cstdlib>\n"
        f"constexpr int n = {size};\n"
        "int main() {\n"
        "  auto *a = static_cast<signed char*>(std::aligned_alloc(4096, n * n));\n"
        "  auto *b = static_cast<signed char*>(std::aligned_alloc(4096, n * n));\n"
        "  auto *c = static_cast<int*>(std::aligned_alloc(4096, n * n * 4));\n"
        "  for (int i = 0; i < n * n; ++i) { a[i] = std::rand(); b[i] = std::rand(); }\n"
        # Through a pointer, as the engine does: otherwise g++ compiles a copy for these sizes.
        "  auto *volatile call = &gemm;\n"
        "  double best = 1e9;\n"
        "  for (int i = 0; i < 15; ++i) {\n"
        "    auto t = std::chrono::steady_clock::now();\n"
        "    call(a, b, c, n, n, n, n, n, n, nullptr, nullptr, 0);\n"
        "    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() "
        "- t).count());\n"
        "  }\n"
        '  std::printf("%.9f", best);\n}\n'
    )
    binary = folder / "direct"
    subprocess.run(hls.compile_command(program, binary), check=True, capture_output=True)
    return float(subprocess.run([binary], capture_output=True, check=True).stdout)


def second_build() -> Figure:
    """``hls.build`` of an unchanged kernel."""
    from pynq_torch import hls

    kernel = hls.find_kernel("gemm", [ROOT / "hw" / "kernels"])
    hls.build(kernel, tool="vitis")
    seconds = best(lambda: hls.build(kernel, tool="vitis"), 7)
    return Figure("second build of an unchanged kernel", seconds * 1e3, "ms", 50, "gemm, of 7")


def device_figures() -> list[Figure]:
    """Torch's device "pynq": fallbacks, and host time where the kernels take none."""
    import bench_device

    small = [
        Figure(
            f"fallback beyond the CPU's own: {what}",
            bench_device.overhead_us(run, count),
            "us",
            8,
            "8x8 float32, 2000 calls in turn, of 7",
        )
        for what, (run, count) in bench_device.FALLBACKS.items()
    ]
    return [
        *small,
        Figure(
            "host, 1024^3 int8 on gemm",
            bench_device.product_ms("gemm"),
            "ms",
            1,
            "torch._int_mm on the device, null kernel, of 15",
        ),
        Figure(
            "host, 1024^3 int8 on 256-tiles",
            bench_device.product_ms("matrix_mult"),
            "ms",
            8,
            "torch._int_mm on the device, 64 starts of a null kernel, of 15",
        ),
        Figure(
            "host, pynq_torch.nn.Linear",
            bench_device.linear_us(),
            "us",
            60,
            "batch 1, 512x512, weights packed, new input, null kernel, of 300",
        ),
    ]


def library_figures() -> list[Figure]:
    """Host time of a call of each kernel of the library."""
    import bench_library

    return [
        Figure(f"host, {label}", us, "us", bench_library.TARGET_US, bench_library.CONDITIONS)
        for label, us in bench_library.overheads().items()
    ]


def library_builds() -> list[Figure]:
    """Time to build all engines of the library from nothing, and again when all is there."""
    from pynq_torch.kernels.library import build_library

    with tempfile.TemporaryDirectory() as folder:
        before = os.environ.get("PYNQ_TORCH_CACHE")
        os.environ["PYNQ_TORCH_CACHE"] = folder
        try:
            times = []
            for _ in range(2):
                begin = time.perf_counter()
                built = build_library(jobs=2)
                times.append(time.perf_counter() - begin)
        finally:
            if before is None:
                del os.environ["PYNQ_TORCH_CACHE"]
            else:
                os.environ["PYNQ_TORCH_CACHE"] = before
    failed = [result.name for result in built if result.error]
    if failed:
        raise RuntimeError(f"kernels that do not build: {', '.join(failed)}")
    compiled = sum(not result.cached for result in built)
    conditions = f"{len(built)} kernels, 2 at a time"
    return [
        Figure("build of the whole library", times[0], "s", 240, f"{conditions}, empty cache"),
        Figure("second build of it", times[1], "s", 10, f"{conditions}, {compiled} built again"),
    ]


def rtl_figures() -> list[Figure]:
    """Board rtl: its speed beside cocotb's, the build and the cycles of the gemm."""
    import bench_rtl

    return [
        Figure(r.what, r.value, r.unit, r.target, r.conditions, r.least, r.kind)
        for r in bench_rtl.results()
    ]


def farm_figures() -> list[Figure]:
    """The scheduler's share of a job on a farm of boards."""
    import bench_farm

    return [
        Figure(
            f"an empty job on a farm of {workers}", seconds * 1e3, "ms", 20,
            f"{bench_farm.JOBS} jobs, processes of this PC, a new board csim a job",
        )
        for workers, seconds in bench_farm.results()
    ]  # fmt: skip


def held() -> dict[str, int]:
    """Return what this process holds: memory, descriptors, child processes, CMA."""
    import pynq_torch

    gc.collect()
    status = Path("/proc/self/status").read_text()
    kib = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    pid = os.getpid()
    return {
        "resident memory (MiB)": kib >> 10,
        "file descriptors": len(os.listdir("/proc/self/fd")),
        "child processes": len(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()),
        "CMA in use (bytes)": pynq_torch.current_board().memory.used_bytes,
    }


def leaks(starts: int, loads: int) -> Table:
    """Start a kernel and load an overlay many times; return what was held before and after."""
    from helpers import overlay_of  # tests/helpers.py

    with tempfile.TemporaryDirectory() as folder:
        overlay = overlay_of(Path(folder), {"nop_0": "nop"}, [NOP])
        bit = overlay.bitfile_name

        def work(starts: int, loads: int) -> None:
            for _ in range(starts):
                overlay.nop_0.write(0, 1)
                while not overlay.nop_0.read(0) & 2:
                    pass
            for _ in range(loads):
                type(overlay)(bit)
            overlay.download()

        work(100, 200)  # the heap and the caches of pynq's parser grow at first
        before = held()
        work(starts, loads)
        after = held()
    table = Table(title=f"held before and after {starts} starts and {loads} overlay loads")
    for column in ("what", "before", "after"):
        table.add_column(column)
    for what, value in before.items():
        table.add_row(what, str(value), str(after[what]))
    return table


def remote_figures() -> list[Figure]:
    """Board "remote": a call, and an operator that takes one."""
    import bench_remote

    return [Figure(what, us, "us", 2000, how) for what, us, how in bench_remote.results()]


def net_figures() -> list[Figure]:
    """A network in one start: latency, and throughput with several inputs in flight."""
    import bench_net

    first, *others = bench_net.results()
    alone = 1e3 / first[1]  # images a second, one after the other
    return [
        Figure(first[0], first[1], first[2], 500, first[3]),
        *(Figure(what, value, unit, alone, how, True) for what, value, unit, how in others),
    ]


def main() -> int:
    """Print the table; ``--json FILE`` writes it too."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--starts", type=int, default=10_000, help="for the table of leaks")
    parser.add_argument("--loads", type=int, default=1_000, help="for the table of leaks")
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests"))
    figures = [
        import_cost(),
        *board_figures(),
        start_overhead(),
        csim_slowdown(),
        second_build(),
        *library_builds(),
        *device_figures(),
        *library_figures(),
        *rtl_figures(),
        *remote_figures(),
        *net_figures(),
        *farm_figures(),
    ]
    table = Table(
        title=f"measured on {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}"
    )
    for column in ("what", "figure", "target", "ratio", "kind", "conditions"):
        table.add_column(column)
    for f in figures:
        table.add_row(
            f.what,
            f"{f.value:.3g} {f.unit}",
            f"{'>=' if f.least else '<='} {f.target:g} {f.unit}",
            f"{f.ratio:.2f}",
            f.kind,
            f.conditions,
        )
    Console(width=130).print(table)
    Console(width=130).print(leaks(arguments.starts, arguments.loads))
    if arguments.json is not None:
        arguments.json.write_text(
            json.dumps([asdict(f) for f in figures], indent=1), encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
