"""Kernels on a card: what v++ is asked for, an .xclbin on a PYNQ-Z2, and the AFI of an F2 instance.

Stand-ins record what the vendors' programs are given; none of those has been run.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pynq
import pytest
from helpers import write
from test_hw_kernels import make

import pynq_torch
from pynq_torch.errors import HandoffError
from pynq_torch.paths import ROOT

#: Writes down its arguments, and makes the files that v++ would.
VPP = """#!/bin/sh
echo "$@" >>"$CALLS"
while [ $# -gt 0 ]; do
  case $1 in
    --work_dir) mkdir -p "$2" && touch "$2/$(basename "$2").xo" ;;
    --output) touch "$2" ;;
  esac
  shift
done
"""
#: The image is pending when asked for the first time.
AWS = """#!/bin/sh
echo "$@" >>"$CALLS"
case "$1 $2" in
  "ec2 create-fpga-image") printf 'afi-1\\tagfi-2\\n' ;;
  "ec2 describe-fpga-images")
    [ -e "$CALLS.asked" ] && echo "$STATE" || echo pending
    touch "$CALLS.asked" ;;
esac
"""


def _program(path: Path, text: str) -> None:
    write(path, text).chmod(0o755)


def test_what_v_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    _program(tmp_path / "bin" / "v++", VPP)
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    wanted = ("xclbin", "OVERLAYS=gemm_dual", f"BUILD={tmp_path}", "MEMORY=HBM[0]")
    done = make(*wanted, path=str(tmp_path / "bin"))
    assert done.returncode and "PLATFORM is not set" in done.stderr
    done = make(*wanted, "PLATFORM=f2.xpfm", path=str(tmp_path / "bin"))
    assert done.returncode == 0, done.stderr
    *compiled, linked = (tmp_path / "calls").read_text().splitlines()
    assert [line.split()[:3] for line in compiled] == [["--compile", "--mode", "hls"]] * 2
    config = tmp_path / "scripts" / "gemm_dual.cfg"
    assert linked.split() == [
        *("--link", "--target", "hw_emu", "--platform", "f2.xpfm", "--config", str(config)),
        *("--temp_dir", str(tmp_path / "xclbin/gemm_dual.tmp")),
        *("--output", str(tmp_path / "xclbin/gemm_dual.xclbin")),
        *(str(tmp_path / f"xo/{kernel}.xo") for kernel in ("gemm", "gemm_lut")),
    ]
    assert config.read_text().count(":HBM[0]\n") == 6 and ":HP" not in config.read_text()
    done = make("xclbin", "OVERLAYS=stream", *wanted[2:], "PLATFORM=f2.xpfm",
                path=str(tmp_path / "bin"))  # fmt: skip
    assert done.returncode and "has streams to axi_dma_0" in done.stderr


@pytest.mark.parametrize("load", [pynq.Overlay, pynq_torch.load])
def test_an_xclbin_on_a_pynq_z2(load, tmp_path: Path):
    pynq_torch.use_board("csim")
    (tmp_path / "card.xclbin").write_bytes(b"xclbin2\0" + bytes(500))
    with pytest.raises(HandoffError, match=r"card.xclbin is for a card that XRT drives"):
        load(str(tmp_path / "card.xclbin"))


@pytest.mark.parametrize(("state", "code", "says"), [
    ("available", 0, "ready; on an F2 instance: sudo fpga-load-local-image -S 0 -I agfi-2"),
    ("failed", 1, "afi-1 is failed; expected available. The logs are in s3://bucket/mine/logs/"),
    ("pending", 1, "afi-1 is pending; expected available."),
])  # fmt: skip
def test_an_amazon_fpga_image(state: str, code: int, says: str, tmp_path: Path):
    _program(tmp_path / "bin" / "aws", AWS)
    subprocess.run(["tar", "-cf", "dcp.tar", "bin"], cwd=tmp_path, check=True)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    environment = os.environ | {
        "PATH": path, "CALLS": str(tmp_path / "calls"), "STATE": state,
        "AFI_SECONDS": "0", "AFI_POLLS": "3",
    }  # fmt: skip
    command = [str(ROOT / "hw/aws/create_afi.sh"), "dcp.tar", "bucket", "mine"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True,
                          timeout=60, check=False)  # fmt: skip
    assert done.returncode == code and says in done.stdout + done.stderr
    copied, created, *asked = (tmp_path / "calls").read_text().splitlines()
    assert copied == "s3 cp dcp.tar s3://bucket/mine/dcp.tar --region us-east-1"
    for option in (
        "ec2 create-fpga-image --region us-east-1 --name mine",
        "--input-storage-location Bucket=bucket,Key=mine/dcp.tar",
        "--logs-storage-location Bucket=bucket,Key=mine/logs/",
    ):
        assert option in created
    assert all("--fpga-image-ids afi-1" in line for line in asked)
    assert len(asked) == (3 if state == "pending" else 2)
