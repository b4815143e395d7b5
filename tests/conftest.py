"""In CI a skipped test fails, unless `allowed_skips.txt` gives it leave."""

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support.skips import leave_to_skip

_ALLOWED = Path(__file__).with_name("allowed_skips.txt")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[
    None, pytest.TestReport, pytest.TestReport
]:
    report = yield
    _fail_without_leave(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[
    None, pytest.CollectReport, pytest.CollectReport
]:
    report = yield
    _fail_without_leave(report)
    return report


def _fail_without_leave(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not os.environ.get("CI") or report.outcome != "skipped":
        return
    if hasattr(report, "wasxfail"):
        return
    if not leave_to_skip(report.nodeid, _ALLOWED.read_text().splitlines()):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        report.outcome = "failed"
        report.longrepr = f"skipped, but not on {_ALLOWED.name}: {reason}"
