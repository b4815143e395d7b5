"""`make ray-test`: tests of engines against a real Ray, and a page of what was seen."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.ray_cluster import VARIABLE

_ROOT = Path(__file__).parents[2]
_PAGE = _ROOT / "benchmarks" / "results" / "ray.md"
_TESTS = ("tests/engines/test_contract.py", "tests/engines/test_ray.py")
_HEAD = """# Ray

Workers that a real Ray starts, over its Jobs API: the suite that every engine
passes, and pools of a real daemon with an actor and a raylet killed. The jobs of
these keep a ledger and hold a lock while they run, so that one that ran twice at once
would be seen. `make ray-test` writes this page.

{versions}, one head and one node on {cores} cores, {when}.

| test | outcome | took |
|---|---|---|
"""


class Outcomes:
    """Notes how each test ended."""

    def __init__(self) -> None:
        self.rows: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that ran, or that could not."""
        if report.when == "call" or report.outcome != "passed":
            name = report.nodeid.rpartition("::")[2].removeprefix("test_")
            words = name.removesuffix("[ray]").replace("_", " ")
            row = f"| {words} | {report.outcome} | {report.duration:.1f} s |"
            self.rows.append(row)


def main() -> int:
    """Run the tests, write the page, and return how they ended."""
    outcomes = Outcomes()
    words = ["-q", "-p", "no:randomly", *(str(_ROOT / one) for one in _TESTS)]
    code = pytest.main(words, plugins=[outcomes])
    ray = subprocess.run(
        [os.environ[VARIABLE], "--version"], capture_output=True, text=True, check=True
    )
    python = ".".join(map(str, sys.version_info[:3]))
    page = _HEAD.format(
        versions=f"{ray.stdout.strip().capitalize()}, Python {python}",
        cores=os.cpu_count(),
        when=time.strftime("%Y-%m-%d"),
    )
    _PAGE.write_text(page + "\n".join(outcomes.rows) + "\n")
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
