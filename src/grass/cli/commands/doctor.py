"""`grass doctor`: what works on this machine, and what to do about the rest."""

from __future__ import annotations

from grass.cli.parsing.hosting_options import last_hosting
from grass.cli.parsing.options import JSON, Command, Option, at_most, read
from grass.cli.printing.streams import print_document, warn
from grass.cli.printing.styled import Styled
from grass.cli.printing.table import this_screen
from grass.config import home
from grass.errors import GrassError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from grass.cli.printing.table import Screen
    from grass.doctor.finding import Finding

OPTIONS = (
    Option(
        "--broker", "ADDRESS", "what the daemon of this broker finds on its machine"
    ),
    JSON,
)
_TINTS = {"ok": "green", "note": "yellow", "wrong": "red"}
_CHECK_WIDTH = 11


def run(words: list[str]) -> int:
    """Print a line for each finding; 1 if something is wrong."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 0)
    screen, found = this_screen(), list["Finding"]()
    findings = _found_by(values.broker) if values.broker else _findings()
    for finding in findings:
        found.append(finding)
        if not values.has("json"):
            _show(finding, screen)
    wrong = [one.check for one in found if one.status == "wrong"]
    if values.has("json"):
        print_document({"ok": not wrong, "findings": [one._asdict() for one in found]})
    if wrong:
        warn(f"wrong here: {', '.join(wrong)}")
    return 1 if wrong else 0


def _found_by(broker: str) -> Iterator[Finding]:
    """Ask the daemon of a broker."""
    from grass.client.client import Client
    from grass.doctor.finding import Finding

    with Client(broker=broker) as client:
        for one in client.doctor()["findings"]:
            yield Finding(**one)


def _findings() -> Iterator[Finding]:
    from grass.daemon.hosting import remote_broker
    from grass.doctor.broker_findings import broker_findings
    from grass.doctor.finding import wrong
    from grass.doctor.gpu_findings import gpu_findings
    from grass.doctor.home_findings import home_findings
    from grass.doctor.machine_findings import machine_findings

    hosting, works_for = last_hosting(), None
    yield from home_findings(home(), hosting.store)
    yield from machine_findings()
    yield from gpu_findings(hosting.gpus)
    try:
        works_for = remote_broker(home(), hosting)
    except GrassError as error:
        yield wrong("broker", error.message, error.hint)
    yield from broker_findings(home(), works_for)


def _show(finding: Finding, screen: Screen) -> None:
    """Write a finding at once: the next check may take a while."""
    import sys

    from grass.cli.printing.quantities import in_local_time
    from grass.cli.printing.streams import printable

    sign = screen.signs.of(finding.status) or f"{finding.status:5} "
    name = f"{finding.check:{_CHECK_WIDTH}} "
    found = in_local_time(finding.finding)
    lines = [Styled((sign, _TINTS[finding.status]), (name, "bold"), (found, ""))]
    if finding.fix:
        lines.append(Styled((" " * len(sign + name) + finding.fix, "dim")))
    for line in lines:
        sys.stdout.write(printable(_whole(line, screen)) + "\n")
    sys.stdout.flush()


def _whole(line: Styled, screen: Screen) -> str:
    """Return a line whole: what to do is of no use when it is cut."""
    return "".join(screen.paint(text, tint) for text, tint in line.pieces)


COMMAND = Command(
    usage="[--broker ADDRESS] [--json]",
    about=(
        "Check what grass needs on this machine: the state directory and its disk, "
        "cgroups, pids, driver, NVML, GPUs and MPS, the daemon, the way to the broker "
        "and the clocks. Each line has what was found and, where that is not as it "
        "could be, what to do. Nothing is changed, and no daemon is needed. The exit "
        "code is 1 if something is wrong; a machine without a GPU is not wrong."
    ),
    options=OPTIONS,
    examples=("grass doctor", "grass doctor --json", "grass doctor --broker gpu-box"),
    run=run,
)
