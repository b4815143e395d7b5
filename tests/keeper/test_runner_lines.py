"""The lines to runners: what was answered counts, also when it is read late."""

from __future__ import annotations

from grass.keeper.core import effects
from grass.keeper.core import keeper_events as events
from grass.keeper.process_table import ProcessTable
from grass.keeper.protocol import TaskRun
from grass.keeper.runner_line import Answer, encoded
from grass.keeper.system.poller import Poller
from grass.keeper.system.runner_lines import RunnerLines

from .cores import spec

PID = 100


def test_an_answer_that_waits_is_read_when_the_line_is_hung_up() -> None:
    poller, fed = Poller(), list[events.KeeperEvent]()
    lines = RunnerLines(ProcessTable(1), lambda cgroup: None)
    lines.connect(poller, fed.append, lambda pid: None)
    line = lines.new()
    lines.started(line, spec("1", task=TaskRun("k", "/f", "", "", "/r", {})), PID, 1)
    line.theirs.sendall(encoded(Answer("1", 3)))
    answered = lines.hang_up(effects.HangUp(PID))
    assert isinstance(answered, events.Answered)
    assert (answered.pid, answered.status >> 8) == (PID, 3)
    assert not fed
    assert lines.hang_up(effects.HangUp(PID)) is None
    line.theirs.close()
