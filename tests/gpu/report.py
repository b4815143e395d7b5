"""Runs the tests on a real GPU and writes `benchmarks/results/gpu.md`."""

import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from xml.etree import ElementTree

import grass
from grass.devices.gpu_check import look
from grass.model.amounts import GIB

ROOT = Path(__file__).resolve().parents[2]
REPORT = ROOT / "benchmarks" / "results" / "gpu.md"
TESTS = ("tests/gpu", "tests/fault/test_host_limits.py")
"""Machines with a GPU are also those whose kernel can limit memory and cores."""


def main() -> int:
    """Return pytest's exit code; the report is written whatever it is."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        words = [sys.executable, "-m", "pytest", "-p", "pytest_timeout", *TESTS]
        around = {"GRASS_GPU_TESTS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        ran = subprocess.run(
            [*words, "-o", "junit_family=xunit1", f"--junitxml={results}"],
            cwd=ROOT,
            env={**os.environ, **around},
            check=False,
        )
        if results.exists():
            lines = [*_head(), *_body(results)]
            REPORT.write_text("\n".join(lines) + "\n")
    return ran.returncode


def _head() -> Iterator[str]:
    seen = look()
    yield "# On a real GPU"
    yield ""
    yield "Written by `make gpu-test`; see `tests/gpu/README.md`."
    yield ""
    yield f"- date: {datetime.now(UTC):%Y-%m-%d}"
    for one in seen.units:
        yield f"- device {one.unit}: {one.name}, {one.memory / GIB:.1f} GiB"
    yield f"- driver: {seen.driver or 'unknown'}"
    yield f"- kernel: {platform.release()}, Python {platform.python_version()}"
    yield f"- torch: {_torch()}"
    yield f"- grass {grass.__version__}"
    yield ""


def _torch() -> str:
    try:
        return version("torch")
    except PackageNotFoundError:
        return "not installed"


def _body(results: Path) -> Iterator[str]:
    cases = list(ElementTree.parse(results).getroot().iter("testcase"))
    yield "| test | result | seconds |"
    yield "|---|---|---|"
    for case in cases:
        name = case.attrib["name"].removeprefix("test_").replace("_", " ")
        yield f"| {name} | {_outcome(case)} | {float(case.attrib['time']):.1f} |"
    measured = [one for case in cases for one in case.iter("property")]
    if measured:
        yield ""
        yield "| measured | |"
        yield "|---|---|"
    for one in measured:
        value = one.attrib["value"].replace("|", "\\|").replace("\n", " ")
        yield f"| {one.attrib['name']} | {value} |"


def _outcome(case: ElementTree.Element) -> str:
    for kind in ("failure", "error"):
        if case.find(kind) is not None:
            return "**failed**"
    skipped = case.find("skipped")
    return "passed" if skipped is None else f"skipped: {skipped.get('message', '')}"


if __name__ == "__main__":
    sys.exit(main())
