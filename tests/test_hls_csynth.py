"""Synthesis reports of both tool generations."""

from __future__ import annotations

import math
import os

import pytest

from pynq_torch import hls
from pynq_torch.errors import KernelError
from pynq_torch.hls.csynth import Loop

VITIS = """<profile>
  <ReportVersion><Version>2024.1</Version></ReportVersion>
  <UserAssignments><Part>xc7z020-clg400-1</Part><TopModelName>gemm</TopModelName>
    <TargetClockPeriod>10.00</TargetClockPeriod><ClockUncertainty>2.70</ClockUncertainty>
  </UserAssignments>
  <PerformanceEstimates>
    <SummaryOfTimingAnalysis><EstimatedClockPeriod>6.923</EstimatedClockPeriod>
    </SummaryOfTimingAnalysis>
    <SummaryOfOverallLatency><Best-caseLatency>100</Best-caseLatency>
      <Average-caseLatency>?</Average-caseLatency><Worst-caseLatency>undef</Worst-caseLatency>
      <Interval-min>101</Interval-min><Interval-max>undef</Interval-max></SummaryOfOverallLatency>
  </PerformanceEstimates>
  <AreaEstimates>
    <Resources><BRAM_18K>28</BRAM_18K><DSP>110</DSP><FF>10</FF><LUT>20</LUT><URAM>0</URAM></Resources>
    <AvailableResources><BRAM_18K>280</BRAM_18K><DSP>220</DSP><FF>106400</FF><LUT>53200</LUT>
      <URAM>0</URAM></AvailableResources>
  </AreaEstimates>
  <ModuleInformation><Module><Name>gemm_Pipeline_row</Name><PerformanceEstimates>
    <SummaryOfLoopLatency><row><Name>row</Name><TripCount>64</TripCount><Latency>66</Latency>
      <PipelineII>1</PipelineII><PipelineDepth>4</PipelineDepth><InstanceList/></row>
    </SummaryOfLoopLatency></PerformanceEstimates></Module></ModuleInformation>
</profile>"""

VIVADO = """<profile>
<ReportVersion><Version>2016.1</Version></ReportVersion>
<UserAssignments><Part>xc7z010clg400-1</Part><TopModelName>conv</TopModelName>
<TargetClockPeriod>10.00</TargetClockPeriod></UserAssignments>
<PerformanceEstimates><SummaryOfLoopLatency>
<Loop1><TripCount><range><min>0</min><max>65535</max></range></TripCount>
<Latency><range><min>0</min><max>-2</max></range></Latency>
<Loop1.1><TripCount>3</TripCount><Latency>15</Latency><IterationLatency>5</IterationLatency></Loop1.1>
</Loop1></SummaryOfLoopLatency></PerformanceEstimates>
<AreaEstimates><Resources><DSP48E>15</DSP48E></Resources>
<AvailableResources><DSP48E>80</DSP48E></AvailableResources></AreaEstimates>
</profile>"""


def test_vitis_report(tmp_path):
    path = tmp_path / "csynth.xml"
    path.write_text(VITIS)
    report = hls.read_report(path)
    assert (report.top, report.part, report.tool_version) == ("gemm", "xc7z020-clg400-1", "2024.1")
    assert (report.clock_target_ns, report.clock_estimate_ns) == (10.0, 6.923)
    assert (report.latency_best, report.latency_average, report.latency_worst) == (100, None, None)
    assert (report.interval_min, report.interval_max) == (101, None)
    assert report.used == {"BRAM_18K": 28, "DSP": 110, "FF": 10, "LUT": 20, "URAM": 0}
    shares = report.utilisation()
    assert shares["DSP"] == 0.5
    assert "URAM" not in shares  # the part has none
    assert report.loops == (Loop("gemm_Pipeline_row", "row", 64, 66, None, 1, 4),)


def test_vivado_report(tmp_path):
    path = tmp_path / "conv_csynth.xml"
    path.write_text(VIVADO)
    report = hls.read_report(path)
    assert (report.used, report.available) == ({"DSP": 15}, {"DSP": 80})
    assert math.isnan(report.clock_estimate_ns)
    # -2 is how 2016.1 prints an overflow.
    assert report.loops == (
        Loop("conv", "Loop1", 65535, None, None, None, None),
        Loop("conv", "Loop1/Loop1.1", 3, 15, 5, None, None),
    )


def test_the_newest_report_of_the_kernel_is_found(tmp_path):
    for index, (folder, text) in enumerate([("a", VITIS), ("b", VITIS), ("c", VIVADO)]):
        path = tmp_path / folder / "syn" / "report" / "csynth.xml"
        path.parent.mkdir(parents=True)
        path.write_text(text)
        os.utime(path, (index + 1, index + 1))
    (tmp_path / "gemm_csynth.xml").write_text("not XML")
    assert hls.find_report(tmp_path, "gemm") == tmp_path / "b" / "syn" / "report" / "csynth.xml"
    assert hls.find_report(tmp_path, "fir") is None


def test_a_broken_report_is_found_so_that_reading_it_says_what_is_wrong(tmp_path):
    path = tmp_path / "syn" / "csynth.xml"
    path.parent.mkdir()
    path.write_text("<profile><broken")
    with pytest.raises(KernelError, match=r"csynth\.xml: not XML"):
        hls.read_report(hls.find_report(tmp_path, "gemm"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<profile", "not XML"),
        ("<?xml version='1.0' encoding='FOO'?><profile/>", "not XML"),
        ("<html/>", "found <html>"),
        ("<profile/>", "top model"),
    ],
)
def test_what_is_no_report(tmp_path, text, message):
    path = tmp_path / "csynth.xml"
    path.write_text(text)
    with pytest.raises(KernelError, match=message):
        hls.read_report(path)


def test_missing_report(tmp_path):
    with pytest.raises(KernelError, match="cannot be read"):
        hls.read_report(tmp_path / "csynth.xml")
