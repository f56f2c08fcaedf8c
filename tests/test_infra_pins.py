"""The versions that are written down in four places agree, and are what is installed."""

from __future__ import annotations

import importlib.metadata
import re
import sys
import sysconfig
from pathlib import Path

import pytest
import yaml
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

try:
    import tomllib
except ImportError:  # Python 3.10
    tomllib = None  # type: ignore[assignment]

#: conda-forge names that differ from the package index's
CONDA_NAMES = {"pytorch": "torch", "matplotlib-base": "matplotlib"}
#: what conda-forge provides and pip does not know
CONDA_ONLY = {"python", "pip", "cxx-compiler", "make", "perl"}
BOARD_IMAGE = {
    "jupyterlab": "3.4.4",
    "notebook": "6.4.12",
    "ipywidgets": "7.7.1",
    "ipykernel": "6.15.1",
    "ipython": "8.4.0",
    "nbclient": "0.5.13",
    "nbformat": "5.4.0",
    "traitlets": "5.3.0",
    "tqdm": "4.64.0",
}


PYTHONS = ("3.10", "3.11", "3.12")
#: the one that environment.yml names
PYTHON = "3.11"


def _pins(path: Path, python: str = PYTHON) -> dict[str, str]:
    """Return package -> version as they hold for a Python; markers ask for nothing else."""
    lines = [line.strip() for line in path.read_text().splitlines()]
    pins = {}
    for line in lines:
        if line and not line.startswith("#"):
            pin, _, marker = line.partition("; ")
            match = re.fullmatch(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.]+)", pin)
            assert match, f"{path.name}: {line!r} is no exact pin"
            assert not marker or re.fullmatch(r"python_version (<|>=) '3\.1[12]'", marker), line
            if marker and not Marker(marker).evaluate({"python_version": python}):
                continue
            assert canonicalize_name(match[1]) not in pins, f"{path.name}: {match[1]} twice"
            pins[canonicalize_name(match[1])] = match[2]
    return pins


@pytest.fixture
def pins(root: Path) -> dict[str, str]:
    return _pins(root / "ci" / "constraints.txt")


def test_what_differs_between_pythons_is_pinned_for_each(root: Path):
    """A package has a version for every Python from the first that needs it on, or up to one."""
    names = [set(_pins(root / "ci" / "constraints.txt", python)) for python in PYTHONS]
    only = [have - have.intersection(*names) for have in names]
    teaching = {
        "aiodns",
        "aiohappyeyeballs",
        "aiohttp",
        "aiosignal",
        "alembic",
        "certipy",
        "configurable-http-proxy",
        "cryptography",
        "frozenlist",
        "jupyterhub",
        "mako",
        "multidict",
        "nbgrader",
        "notebook",
        "oauthlib",
        "pamela",
        "propcache",
        "pycares",
        "rapidfuzz",
        "sqlalchemy",
        "yarl",
    }  # fmt: skip  nbgrader and jupyterhub, with what they need
    assert only == [{"decorator", "exceptiongroup", "tomli"}, teaching, teaching]


def _environment(root: Path) -> tuple[dict[str, str], list[str]]:
    """Return the conda part as name -> version, and the lines of the pip part."""
    loaded = yaml.safe_load((root / "environment.yml").read_text())
    conda = [item for item in loaded["dependencies"] if isinstance(item, str)]
    (pip,) = (item["pip"] for item in loaded["dependencies"] if isinstance(item, dict))
    return {item.partition("=")[0]: item.partition("=")[2] for item in conda}, pip


def test_environment_yml_carries_the_pins(root: Path, pins: dict[str, str]):
    conda, pip = _environment(root)
    versions = {CONDA_NAMES.get(n, n): v for n, v in conda.items() if n not in CONDA_ONLY}
    assert pip[0] == "--constraint ci/constraints.txt"
    versions |= dict(line.split("==") for line in pip[1:])
    assert versions == {name: pins.get(canonicalize_name(name)) for name in versions}


def test_environment_yml_has_every_requirement_and_the_tools(root: Path):
    conda, pip = _environment(root)
    names = {CONDA_NAMES.get(name, name) for name in conda} | {
        line.split("==")[0] for line in pip[1:]
    }
    wanted = {canonicalize_name(r.name) for r in _requirements(root)}
    wanted -= {"tomli"}  # for Python 3.10
    assert wanted - {canonicalize_name(name) for name in names} == set()
    assert set(conda) >= CONDA_ONLY


def _requirements(root: Path) -> list[Requirement]:
    if tomllib is None:
        pytest.skip("tomllib came with Python 3.11")
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    lines = list(project["dependencies"])
    for extra in project["optional-dependencies"].values():
        lines += extra
    # An extra may take in another one of ours.
    return [r for line in lines if (r := Requirement(line)).name != "pynq_torch"]


@pytest.mark.parametrize("python", PYTHONS)
def test_every_requirement_is_pinned_inside_its_range(root: Path, python: str):
    pins = _pins(root / "ci" / "constraints.txt", python)
    for requirement in _requirements(root):
        if requirement.marker and not requirement.marker.evaluate({"python_version": python}):
            continue
        pin = pins[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(pin), f"{requirement} against {pin}"


def test_torch_is_left_out_where_there_is_no_wheel(root: Path):
    (torch,) = (r for r in _requirements(root) if r.name == "torch")
    assert torch.marker is not None
    assert not torch.marker.evaluate({"platform_machine": "armv7l"})
    assert all(torch.marker.evaluate({"platform_machine": m}) for m in ("x86_64", "aarch64"))


def test_the_board_image_has_its_own_jupyter(root: Path):
    pins = _pins(root / "ci" / "constraints-board-image.txt")
    assert {name: pins[name] for name in BOARD_IMAGE} == BOARD_IMAGE
    assert (pins["nbval"], pins["papermill"]) == ("0.11.0", "2.7.0")


def test_both_environments_share_what_is_not_jupyter(root: Path, pins: dict[str, str]):
    image = _pins(root / "ci" / "constraints-board-image.txt")
    for name in ("pynq", "torch", "numpy", "pycparser", "hls4ml", "libclang", "matplotlib"):
        assert image[name] == pins[name]


def test_what_is_installed_is_what_is_pinned(root: Path):
    pins = _pins(root / "ci" / "constraints.txt", f"{sys.version_info[0]}.{sys.version_info[1]}")
    installed = {
        canonicalize_name(d.metadata["Name"]): d.version.partition("+")[0]
        # Not all of sys.path: setuptools puts a folder with its own copies of packages there.
        for d in importlib.metadata.distributions(path=[sysconfig.get_path("purelib")])
    }
    if installed.get("jupyterlab") == BOARD_IMAGE["jupyterlab"]:
        pytest.skip("this is the board image's environment")
    # A torch that is no CPU build brings its CUDA libraries, whose versions it pins itself.
    own = {n: v for n, v in installed.items() if not re.match(r"nvidia-|cuda-|triton", n)}
    own = {n: v for n, v in own.items() if n not in {"pip", "pynq-torch", "wheel"}}
    assert {n: pins.get(n) for n in own} == own


@pytest.mark.parametrize("name", ["pyproject.toml", "environment.yml", "Makefile", "ci", ".ci"])
def test_nothing_names_an_index(root: Path, name: str):
    path = root / name
    files = [p for p in path.rglob("*") if p.is_file()] if path.is_dir() else [path]
    for file in files:
        text = file.read_text()
        assert not re.search(r"--(extra-)?index-url|--find-links|https?://", text), file
