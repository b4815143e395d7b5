"""Every command of Grass on the page for people who come from another tool runs."""

import re

import pytest

from tests.docs.pages import ROOT
from tests.support.fixtures import lasting, shared
from tests.support.homes import GrassHome
from tests.support.patience import until

__all__ = ["lasting", "shared"]

pytestmark = pytest.mark.daemon

PAGE = (ROOT / "docs/how-to/coming-from.md").read_text()
NAMES_ONLY = "grass enqueue"
ONLY_READ = (
    *("grass stop", "grass stop --jobs", "grass show --watch", "grass edit 7"),
    *("grass shell -g 1", "grass run --pty -- python"),
)
"""What would stop the daemon, or needs a terminal: only its words are read."""
LAST = ("delete-queue", "prune")
"""Verbs that take away what others need."""
STATES = {
    **dict.fromkeys(("cancel", "suspend", "signal"), "running"),
    "continue": "suspended",
    **dict.fromkeys(("edit", "hold"), "waiting"),
    **dict.fromkeys(("release", "enqueue"), "held"),
    **dict.fromkeys(("remove", "rerun"), "ended"),
}
"""The state in which a verb needs job 7; for the others there is one that has ended."""


def commands() -> list[str]:
    found = set(re.findall(r"`(grass [^`]+)`", PAGE)) - {NAMES_ONLY}
    return sorted(found, key=lambda one: (one.split()[1] in LAST, one))


@pytest.fixture
def desk(shared: GrassHome) -> GrassHome:
    """A home with what the page takes for granted: GPUs, files, and nine jobs."""
    for name in ("train.py", "test.py", "t.py", "a.py", "b.py"):
        (shared.desk / name).write_text("")
    (shared.desk / "job.sh").write_text("true\n")
    (shared.desk / "jobs.txt").write_text("true\ntrue\n")
    (shared.desk / "values.txt").write_text("1\n2\n")
    shared.client.create_queue("gpu", {"capacity": "{gpu:4}"})
    done = shared.client.enqueue_many(["true"] * 9, require={}, name="fit")
    shared.client.wait([f"{done['first']}-{done['last']}"])
    return shared


def test_every_command_of_the_page_runs(desk: GrassHome) -> None:
    assert len(commands()) > 100
    problems = [problem for one in commands() if (problem := tried(desk, one))]
    assert not problems, "\n".join(problems)


def tried(home: GrassHome, command: str) -> str:
    """Run a command; return what is wrong with it."""
    verb = command.split()[1]
    if verb in ("wait", "run"):
        home.client.cancel(["all"])
    line = command
    if command in ONLY_READ:
        options, dashes, words = command.partition(" -- ")
        line = f"{options} --help{dashes}{words}"
    if verb in STATES and "7" in command:
        line = re.sub(r"(?<![-\w])7\b", str(job_in(home, STATES[verb])), line)
    if verb == "web":
        # The usual port may be somebody else's here.
        line = f"{line} --port 0"
    if "--from -" in line:
        line = f"cat values.txt | {line}"
    ran = home.shell(line)
    home.client.resume()
    return f"{line}: {ran.returncode} {ran.stderr}" if ran.returncode else ""


def job_in(home: GrassHome, state: str) -> int:
    """Return a new job in a state."""
    client = home.client
    if state == "held":
        return client.enqueue("true", hold=True)
    if state == "waiting":
        return client.enqueue("true", begin_at="2099-01-01T00:00:00+00:00")
    if state == "ended":
        id = client.enqueue("true", require={})
        client.wait([str(id)])
        return id
    id = client.enqueue(["sleep", "600"], require={})
    until(lambda: client.job(id)["pid"], f"job {id} never started", bool)
    if state == "suspended":
        client.suspend([str(id)])
    return id
