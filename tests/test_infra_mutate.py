"""`make mutate`: what it plants, what it calls killed, and that it leaves the tree alone."""

from __future__ import annotations

from pathlib import Path

import mutate
import pytest
from mutate_table import AREAS
from mutations import mutations_of

MODULE = '''"""A module."""


def inside(value: int, end: int) -> bool:
    return 0 <= value < end
'''
WEAK = """from pynq_torch.area import inside


def test_inside() -> None:
    assert inside(3, 5)


def test_not_inside() -> None:
    assert not inside(9, 5)
"""
STRONG = """from pynq_torch.area import inside


def test_bounds() -> None:
    assert [inside(v, 3) for v in range(-2, 5)] == [False] * 2 + [True] * 3 + [False] * 2
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    for name, text in {
        "pynq_torch/__init__.py": "",
        "pynq_torch/area.py": MODULE,
        "tests/test_weak.py": WEAK,
        "tests/test_strong.py": STRONG,
        "tests/test_area.py": STRONG,
        "hw/kernels/k/k.cpp": "void k(int n) { if (n < 4) n = 1; }\n",
        "hw/kernels/k/k_tb.cpp": "int main() { return 1; }\n",
    }.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    return tree


def _changed(tree: Path, text: str, name: str = "pynq_torch/area.py") -> set[str]:
    (tree / name).write_text(text)
    return {mutation.changed for mutation in mutations_of(Path(name), tree)}


def test_a_weak_test_leaves_survivors_and_a_strong_one_none(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["area", "--sample", "0"]
    assert mutate.main(arguments, root=tree, areas={"area": "weak"}, equivalent=()) == 1
    weak = capsys.readouterr().out
    assert "pynq_torch/area.py:5: survived 2 tests\n" in weak
    assert "  - return 0 <= value < end\n  + return 1 <= value < end\n" in weak
    assert "return None" not in weak
    assert mutate.main([*arguments, "--verbose"], root=tree, areas={}, equivalent=()) == 0
    strong = capsys.readouterr().out
    assert "survived" not in strong
    assert "mutants killed: 100 % (at least 90 % expected)" in strong
    assert "killed by tests/test_area.py::test_bounds\n  - return 0 <= value < end" in strong
    assert (tree / "pynq_torch/area.py").read_text() == MODULE


def test_a_hang_is_noticed_and_what_does_not_compile_does_not_count(
    tree: Path, tmp_path: Path
) -> None:
    source = tree / "pynq_torch/area.py"
    source.write_text("import time\n\nn = 0\ntime.sleep(60.0 * n)\n")
    (tree / "tests/test_area.py").write_text("def test_it() -> None:\n    import pynq_torch.area\n")
    mutation = mutations_of(Path("pynq_torch/area.py"), tree)[0]
    assert mutation.changed == "n = 1"
    copy = mutate.Copy(tree, tmp_path / "copy")
    assert copy.judge(mutation, ["tests/test_area.py"], 4.0).killed_by == "a hang"
    says = "def test_it() -> None:\n    raise OSError('area.py:3:1: error: expected ;')\n"
    (copy.tree / "tests/test_area.py").write_text(says)
    assert not copy.judge(mutation, ["tests/test_area.py"], 60.0).valid
    assert (copy.tree / "pynq_torch/area.py").read_bytes() == source.read_bytes()


def test_what_cannot_be_killed_is_excluded_and_what_is_gone_is_said(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [Path("pynq_torch/area.py")]
    every, total = mutate.sample("area", files, 0, 0, tree, ())
    assert len(every) == total
    gone = ("area", "return 1", "return 2", "no such line")
    known = (("area", every[0].was, every[0].changed, "for the test"), gone)
    rest, fewer = mutate.sample("area", files, 0, 0, tree, known)
    assert (rest, fewer) == (every[1:], total - 1)
    assert "no longer there: ('area', 'return 1', 'return 2')" in capsys.readouterr().out


def test_a_seed_means_one_sample(tree: Path) -> None:
    files = [Path("pynq_torch/area.py")]
    samples = [mutate.sample("area", files, seed, 4, tree, ())[0] for seed in (1, 1, 2)]
    assert samples[0] == samples[1] != samples[2]
    assert len(samples[0]) == 4


def test_the_tests_of_a_file_stay_in_its_order_behind_those_that_noticed_others(tree: Path) -> None:
    mutation = mutations_of(Path("pynq_torch/area.py"), tree)[0]
    seconds = {"a::one": 3.0, "a::two": 1.0, "b::one": 2.0, "b::two": 0.5, "c::one": 0.1}
    records = [{"test": name, "seconds": s, "lines": {}} for name, s in seconds.items()]

    def order(*killers: str, area: str = "a b c") -> list[str]:
        return mutate.choose(records, mutation, killers, area.split())

    assert order() == ["c::one", "b::one", "b::two", "a::one", "a::two"]
    assert order("a::two") == ["a::two", "c::one", "b::one", "b::two", "a::one"]
    assert order("c::one", area="a") == ["a::one", "a::two"]
    records[1]["lines"] = {mutation.path: set(mutation.lines)}
    assert order(area="b") == ["a::two"]


def test_misuse_is_one_line(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mutate.main(["nothing"], root=tree) == 2
    assert "MODULE=nothing: neither a file nor a folder" in capsys.readouterr().err
    (tree / "tests/test_area.py").write_text("def test_wrong() -> None:\n    assert False\n")
    assert mutate.main(["area"], root=tree, areas={}) == 2
    assert "the tests fail without a fault" in capsys.readouterr().err
    (tree / "tests/test_area.py").unlink()
    assert mutate.main(["area"], root=tree, areas={}) == 2
    assert "give TESTS=" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("a = b < c", {"a = (b <= c)", "a = (b >= c)"}),
        ("a = b and c", {"a = (b or c)"}),
        ("a = not b", {"a = bool(b)"}),
        ("a = b + 1", {"a = (b - 1)", "a = b + 2", "a = b + 0"}),
        ("a = b if c else d", {"a = (d if c else b)"}),
        ("a.b = True", {"pass", "a.b = False"}),
        ("a(b)", {"pass"}),
        ("a |= b", {"pass", "a &= b"}),
        ("raise a", {"pass"}),
        ("a: int = min(b)", {"a: int = max(b)"}),
        ("a = f'{b + 1}' + 'c'", set()),
    ],
)
def test_what_is_planted_in_python(tree: Path, line: str, changed: set[str]) -> None:
    assert _changed(tree, f"{line}\n") == changed


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("bool a = b < c;", {"bool a = b <= c;", "bool a = b >= c;"}),
        ("std::vector<int> a{b && c};", {"std::vector<int> a{b || c};"}),
        ("done();  // a < b", {";  // a < b"}),
        ("a.b = 3;", {";", "a.b = 4;", "a.b = 2;"}),
        ("return !a;", {"return a;"}),
        (
            "constexpr long kNapNs = 20'000, kTurns = 0;",
            {"constexpr long kNapNs = 20'000, kTurns = 1;"},
        ),
        ("usleep(20);", set()),
        ("constexpr int BURST = 16;", set()),
        ("BINARY(ADD, 1, a + b)", {"BINARY(ADD, 1, a - b)"}),
        (
            "using Beat = ap_axiu<32, 0, 0, 0>;",
            {f"using Beat = ap_axiu<{n}, 0, 0, 0>;" for n in (31, 33)},
        ),
        ("return b < c ? b : c;", {"return b >= c ? b : c;"}),
        ("return b < S::C ? b : S::C;", {"return b >= S::C ? b : S::C;"}),
        ("struct timespec nap{0, 20}; nanosleep(&nap, nullptr);", set()),
        ('#pragma HLS UNROLL factor=2\nputs("1 < 2");', {";"}),
        ("int *a; int b = c * d;", {"int *a; int b = c / d;"}),
    ],
)
def test_what_is_planted_in_cpp(tree: Path, line: str, changed: set[str]) -> None:
    assert _changed(tree, f"{line}\n", "hw/kernels/k/k.cpp") == changed


def test_a_shared_header_meets_the_testbenches_of_all_kernels_that_read_it(tree: Path) -> None:
    for name, text in {
        "hw/include/shared.hpp": "inline int twice(int n) { return 2 * n; }\n",
        "hw/include/between.hpp": '#include "shared.hpp"\n',
        "hw/include/shared_tb.hpp": "",
        "hw/kernels/l/l.cpp": '#include "../../include/between.hpp"\n',
        "hw/kernels/m/m.cpp": '#include "../../include/shared.hpp"\n#include "../k/k.cpp"\n',
    }.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    files = mutate.files_of("hw/include", tree)
    assert [file.name for file in files] == ["between.hpp", "shared.hpp"]
    run = "tests/test_hw_kernels.py::test_testbench[{}]".format
    assert mutate.tests_of(files[1], tree, {}) == [run("l"), run("m")]
    assert mutate.tests_of(Path("hw/kernels/k/k.cpp"), tree, {}) == [run("k"), run("m")]


def test_which_tests_answer_for_a_file(tree: Path, root: Path) -> None:
    kernel = mutate.files_of("hw/kernels/k", tree)
    assert kernel == [Path("hw/kernels/k/k.cpp")]
    assert mutate.tests_of(kernel[0], tree, {}) == ["tests/test_hw_kernels.py::test_testbench[k]"]
    areas = {"a*": "weak", "area": "strong missing", "rea": "weak", "area_longer": "weak"}
    for place in ("area.py", "room/area.py"):
        found = mutate.tests_of(Path("pynq_torch") / place, tree, areas)
        assert found == ["tests/test_strong.py"]
    for end, names in AREAS.items():
        assert list((root / "pynq_torch").rglob(f"{end}.*")), end
        assert all((root / f"tests/test_{name}.py").is_file() for name in names.split()), end
