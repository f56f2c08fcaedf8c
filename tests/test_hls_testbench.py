"""Testbenches under plain g++: PASS, failure, crash, endless loop."""

from __future__ import annotations

import pytest

from pynq_torch import hls
from pynq_torch.errors import KernelBuildError, KernelError, KernelTimeout, VerificationError

pytestmark = pytest.mark.usefixtures("own_cache")

BENCH = """
#include <cstdio>
#include <cstdlib>
int add(int a, int b);
int main() {
    FILE* golden = std::fopen("golden.txt", "r");
    int expected = 0;
    if (!golden || std::fscanf(golden, "%d", &expected) != 1) return 9;
    FILE* out = std::fopen("out.txt", "w");
    std::fclose(out);
    std::printf("2 + 3 = %d\\n", add(2, 3));
    CHECK
    return add(2, 3) == expected ? 0 : 1;
}
"""


@pytest.fixture
def kernel(tmp_path):
    folder = tmp_path / "add"
    folder.mkdir()
    (folder / "add.cpp").write_text("int add(int a, int b) { return a + b; }")
    (folder / "add_tb.cpp").write_text(BENCH.replace("CHECK", ""))
    (folder / "golden.txt").write_text("5\n")
    found = hls.find_kernel("add", [tmp_path])
    assert found is not None
    return found


def test_pass(kernel):
    result = hls.run_testbench(kernel)
    assert result.exit_code == 0
    assert "2 + 3 = 5" in result.output
    # What it wrote went to a scratch folder, as under Vitis.
    assert not (kernel.folder / "out.txt").exists()
    assert hls.run_testbench(kernel).output == result.output


def test_failure_shows_the_last_lines(kernel):
    kernel.source.write_text("int add(int a, int b) { return a - b; }")
    with pytest.raises(VerificationError, match=r"add_tb\.cpp returned 1(.|\n)*2 \+ 3 = -1"):
        hls.run_testbench(kernel)


def test_crash(kernel):
    (kernel.folder / "add_tb.cpp").write_text(BENCH.replace("CHECK", "std::abort();"))
    with pytest.raises(VerificationError, match="killed by signal 6"):
        hls.run_testbench(kernel)


def test_endless_loop(kernel):
    bench = BENCH.replace("CHECK", "std::fflush(stdout); for (volatile int i = 0;; ++i) {}")
    (kernel.folder / "add_tb.cpp").write_text(bench)
    with pytest.raises(KernelTimeout, match=r"within 2 s(.|\n)*2 \+ 3 = 5"):
        hls.run_testbench(kernel, timeout_s=2)


def test_no_testbench(kernel):
    (kernel.folder / "add_tb.cpp").unlink()
    with pytest.raises(KernelError, match=r"no testbench\. Expected add_tb\.cpp"):
        hls.run_testbench(kernel)


def test_testbench_under_another_name_that_includes_the_kernel(kernel):
    (kernel.folder / "add_tb.cpp").unlink()
    (kernel.folder / "main.cpp").write_text('#include "add.cpp"\n' + BENCH.replace("CHECK", ""))
    assert hls.run_testbench(kernel).exit_code == 0


def test_testbench_that_does_not_compile(kernel):
    (kernel.folder / "add_tb.cpp").write_text(BENCH.replace("CHECK", "nonsense"))
    with pytest.raises(KernelBuildError, match=r"add_tb\.cpp:\d+:\d+: error: .*nonsense"):
        hls.run_testbench(kernel)


@pytest.mark.slow
def test_sanitizer_finds_what_the_bench_does_not_see(kernel):
    kernel.source.write_text(
        "int add(int a, int b) { volatile int t[2] = {a, b}; volatile int i = 2;\n"
        "int beyond = t[i]; return a + b + 0 * beyond; }"
    )
    assert hls.run_testbench(kernel).exit_code == 0
    with pytest.raises(VerificationError, match="index 2 out of bounds|stack-buffer-overflow"):
        hls.run_testbench(kernel, sanitize=True)


def test_an_exception_is_the_reason(kernel):
    bench = BENCH.replace("CHECK", "std::fflush(stdout); fail();")
    head = '#include <stdexcept>\nstatic void fail() { throw std::runtime_error("no room"); }\n'
    (kernel.folder / "add_tb.cpp").write_text(head + bench)
    with pytest.raises(VerificationError) as caught:
        hls.run_testbench(kernel)
    text = str(caught.value)
    assert text.endswith("add_tb.cpp was stopped: no room. It printed last:\n2 + 3 = 5")


def test_a_segmentation_fault_says_what_names_the_line(kernel):
    bench = BENCH.replace("CHECK", "*(volatile int*)16 = 1;")
    (kernel.folder / "add_tb.cpp").write_text(bench)
    with pytest.raises(
        VerificationError, match=r"signal 11, .*pointer .*--sanitize names the line"
    ):
        hls.run_testbench(kernel)
    with pytest.raises(VerificationError, match=r"was stopped in add_tb\.cpp:12: .*\(SEGV\)"):
        hls.run_testbench(kernel, sanitize=True)


@pytest.mark.slow
def test_the_line_of_an_index_outside_the_callers_array_and_of_an_endless_loop(kernel):
    kernel.source.write_text(
        "int add(int a, int b) {\n    return a + b;\n}\n"
        "static int sum(const int* x, int n) {\n    int s = 0;\n"
        "    for (int i = 0; i < n; ++i)\n        s += x[i];\n    return s;\n}\n"
        "int first(const int* x, int n) { return sum(x, n); }\n"
        "int wait(volatile int* x) {\n    while (*x == 0) {\n    }\n    return 1;\n}\n"
    )
    head = "int first(const int*, int);\nint wait(volatile int*);\n"
    for call, error, said in (
        ("int x[4] = {}; std::printf(\"%d\", first(x, 5));", VerificationError,
         r"was stopped in add\.cpp:7: an index or pointer outside its array \(stack-buffer-over"),
        ("int x = 0; wait(&x);", KernelTimeout,
         r"did not end within 2 s, and was in add\.cpp:1[12] then\. It printed"),
    ):  # fmt: skip
        (kernel.folder / "add_tb.cpp").write_text(head + BENCH.replace("CHECK", call))
        with pytest.raises(error, match=said):
            hls.run_testbench(kernel, sanitize=True, timeout_s=2)
