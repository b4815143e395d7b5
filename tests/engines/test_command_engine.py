"""What a template's commands say, and what is made of it."""

import asyncio
import os
import signal
import sys
import threading
import time
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from grass.engines import command_engine, filling
from grass.engines.command_engine import CommandEngine
from grass.engines.engine_commands import EngineCommands
from grass.engines.listing import by_mark
from grass.errors import CannotAsk, EngineRefusal, UsageError
from grass.model.command_templates import template_from
from grass.model.pools import PilotReport, PilotState
from tests.engines import templates
from tests.engines.asking import do, wanted
from tests.support.patience import PATIENCE_S

PRINT = "import sys; sys.stdout.write(sys.argv[1]); sys.exit(int(sys.argv[2]))"
FAIL = "import sys; sys.exit(sys.argv[1])"


def tables(**changes: dict[str, Any]) -> dict[str, Any]:
    """Return the tables of a template, with some keys changed."""
    found = tomllib.loads(templates.SLURM)
    return {name: {**keys, **changes.get(name, {})} for name, keys in found.items()}


def engine(**changes: dict[str, Any]) -> CommandEngine:
    return CommandEngine(EngineCommands(), template_from(tables(**changes)))


def listing(text: str, code: int = 0, **keys: object) -> CommandEngine:
    """Return an engine whose list is this text."""
    command = [sys.executable, "-c", PRINT, text, str(code)]
    return engine(status={"command": command, "answer": "", **keys})


def failing(table: str, words: str, **keys: object) -> CommandEngine:
    """Return an engine one of whose commands fails with these words."""
    command = [sys.executable, "-c", FAIL, words, "{ids}"]
    return engine(**{table: {"command": command, **keys}})


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("PENDING", PilotState.PENDING),
        ("RUNNING", PilotState.RUNNING),
        ("FAILED", PilotState.ENDED),
        ("failed", PilotState.UNKNOWN),
        ("FROZEN", PilotState.UNKNOWN),
    ],
)
def test_a_word_means_what_the_template_says(word: str, state: PilotState) -> None:
    report = do(listing(f"7|{word}|m1|Cold\n").poll("grass-x", ["m1"]))["m1"]
    assert (report.state, report.word, report.reason) == (state, word, "Cold")


def test_jobs_of_several_lines_are_read_as_pbs_prints_them() -> None:
    text = """Job Id: 12.server
    Job_Name = grass-uni
    job_state = Q
    Variable_List = PBS_O_HOME=/home/ada,PBS_O_PATH=/usr/bin:/bin,GRASS_MA
\tRK=m1,PBS_O_WORKDIR=/home/ada
    comment = Not Running: Not enough of the right type of nodes are available

Job Id: 13.server
    job_state = R
    Variable_List = GRASS_MARK=m2
    exec_host = n7/0*4
"""
    pbs = listing(
        text,
        split="Job Id: ",
        unfold="\n\t",
        id=r"^(\S+)",
        mark=r"GRASS_MARK=(\w+)",
        state=r"job_state = (\w+)",
        reason="comment = (.+)",
        place=r"exec_host = (\S+)",
    )
    reports = do(pbs.poll("grass-uni", ["m1", "m2", "m3"]))
    assert reports["m1"].engine_id == "12.server"
    assert reports["m1"].reason.startswith("Not Running: Not enough")
    assert (reports["m2"].word, reports["m2"].place) == ("R", "n7/0*4")
    assert reports["m3"].state is PilotState.ABSENT


def test_a_list_that_fails_says_nothing() -> None:
    with pytest.raises(CannotAsk, match="cannot connect"):
        do(failing("status", "cannot connect to server").poll("grass-x", ["m1"]))


def test_a_list_that_does_not_look_like_one_says_nothing() -> None:
    slurm = listing("Welcome to login1\n", answer=r"^JOBID\|")
    with pytest.raises(CannotAsk, match="printed no list: Welcome to login1"):
        do(slurm.poll("grass-x", ["m1"]))


def test_a_long_list_does_not_hold_up_the_broker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads, goes_on = threading.Event(), threading.Event()

    def slow(listed: Iterable[PilotReport], marks: Sequence[str]) -> Any:
        reads.set()
        assert goes_on.wait(PATIENCE_S)
        return by_mark(listed, marks)

    async def poll() -> PilotState:
        site = listing("7|RUNNING|m1|None\n8|RUNNING|of-ada|None\n")
        polling = asyncio.ensure_future(site.poll("grass-x", ["m1"]))
        while not reads.is_set():  # noqa: ASYNC110 -- it is set by another thread
            await asyncio.sleep(0.01)
        goes_on.set()
        return (await polling)["m1"].state

    monkeypatch.setattr(command_engine, "by_mark", slow)
    assert do(poll()) is PilotState.RUNNING


def test_an_error_may_only_say_that_there_is_no_job() -> None:
    lsf = failing("status", "No unfinished job found", empty=["No unfinished job"])
    assert do(lsf.poll("grass-x", ["m1"]))["m1"].state is PilotState.ABSENT


def test_a_submit_that_prints_no_id_may_have_submitted(folder: Path) -> None:
    command = [sys.executable, "-c", PRINT, "welcome", "0"]
    with pytest.raises(CannotAsk, match="no job id: welcome"):
        do(engine(submit={"command": command}).submit(wanted(folder)))


def test_a_submit_that_fails_is_a_refusal_unless_the_template_says_otherwise(
    folder: Path,
) -> None:
    with pytest.raises(EngineRefusal, match="no such queue"):
        do(failing("submit", "no such queue").submit(wanted(folder)))
    with pytest.raises(CannotAsk, match="Unable to contact"):
        do(failing("submit", "Unable to contact it").submit(wanted(folder)))


def test_a_command_that_is_killed_has_said_nothing(folder: Path) -> None:
    killed = engine(submit={"command": ["sh", "-c", "kill -9 $$"]})
    with pytest.raises(CannotAsk):
        do(killed.submit(wanted(folder)))


def test_without_a_check_the_scheduler_is_at_least_asked_for_a_list(
    folder: Path,
) -> None:
    command = [sys.executable, "-c", FAIL, "no scheduler here"]
    without = tables(status={"command": command})
    del without["check"]
    with pytest.raises(CannotAsk, match="no scheduler here"):
        do(
            CommandEngine(EngineCommands(), template_from(without)).check(
                wanted(folder)
            )
        )


def test_a_script_is_filled_with_what_the_pilot_has(tmp_path: Path) -> None:
    request = wanted(tmp_path / "a b", "python", "x y", gpus=2)
    request = replace(
        request, options=("-q gpu", "-A lab"), setup=("module load cuda", "ulimit -l")
    )
    script = """#PBS {options}
#PBS -l mem={memory_mib}mb
#PBS -l gpus={gpus},walltime={time_hms}
cd {directory}
{setup}
echo ${name} {other}
exec {command}"""
    assert filling.script_of(script, request).splitlines() == [
        "#PBS -q gpu",
        "#PBS -A lab",
        "#PBS -l gpus=2,walltime=00:05:00",
        f"cd '{tmp_path}/a b'",
        "module load cuda",
        "ulimit -l",
        "echo ${name} {other}",
        "exec python 'x y'",
    ]


def test_words_are_filled_or_left_out(tmp_path: Path) -> None:
    request = replace(wanted(tmp_path), options=("-a", "-b"))
    words = ("qsub", "-N={name}", "--gpus={gpus}", "{options}", "$HOME/{x}")
    filled = filling.command_of(words, request)
    assert filled == ("qsub", f"-N={request.name}", "-a", "-b", "$HOME/{x}")
    assert filling.words_with(("qdel", "{ids}"), "", ["1", "2"]) == ("qdel", "1", "2")
    assert filling.words_with(("k", "-j={ids}"), "", ["1", "2"]) == ("k", "-j=1,2")


@pytest.mark.parametrize(
    ("table", "keys", "key", "words"),
    [
        ("submit", {"command": []}, "submit.command", "it has no words"),
        ("submit", {"command": "qsub"}, "submit.command", "expected a list of words"),
        ("submit", {"command": [7]}, "submit.command", "expected `str`, got `int`"),
        ("submit", {"id": "(1"}, "submit.id", "it is no regular expression"),
        ("submit", {"id": "1"}, "submit.id", "it has 0 groups, not one"),
        ("submit", {"script": "exec {command}"}, "submit.script", "{mark}"),
        ("submit", {"script": "# {mark}"}, "submit.script", "{command}"),
        ("submit", {"ids": "(1)"}, "submit.ids", "there is no such key"),
        ("status", {"mark": "(a)(b)"}, "status.mark", "it has 2 groups"),
        ("status", {"answer": "("}, "status.answer", "it is no regular expression"),
        ("states", {"ended": ["RUNNING"]}, "states.ended", "listed under running too"),
        ("cancel", {"command": ["qdel"]}, "cancel.command", "it has no {ids}"),
        ("stats", {}, "stats", "there is no such key"),
    ],
)
def test_what_is_wrong_with_a_template_is_said_with_its_key(
    table: str, keys: dict[str, Any], key: str, words: str
) -> None:
    wrong = {**tables(**{table: keys}), **({} if keys else {table: {}})}
    with pytest.raises(UsageError) as raised:
        template_from(wrong)
    assert raised.value.message.startswith(f"`{key}`: ")
    assert words in raised.value.message
    assert raised.value.hint
    assert raised.value.field == f"template.{key}"


@pytest.mark.parametrize("name", ["submit", "status", "states", "cancel"])
def test_a_table_that_is_missing_is_named(name: str) -> None:
    without = tables()
    del without[name]
    with pytest.raises(UsageError, match=f"`{name}`: it is missing"):
        template_from(without)


def test_without_a_list_pilots_tell_of_themselves(folder: Path) -> None:
    command = [sys.executable, "-c", PRINT, "submitted", "0"]
    found = {"submit": {**tables()["submit"], "command": command}}
    site = CommandEngine(EngineCommands(), template_from(found), str(folder))

    def look(mark: str) -> PilotState:
        return do(site.poll("grass-x", [mark]))[mark].state

    marks = [wanted(folder).mark for _ in range(2)]
    assert look(marks[0]) is PilotState.ABSENT
    for mark in marks:
        (folder / mark).write_text("token")
        request = replace(wanted(folder), mark=mark)
        assert do(site.submit(request)) == mark
        assert look(mark) is PilotState.PENDING
    (folder / f"{marks[0]}.began").write_text(str(time.time() + 600))
    (folder / marks[0]).unlink()
    assert look(marks[0]) is PilotState.RUNNING
    do(site.cancel(marks))
    assert [look(mark) for mark in marks] == [PilotState.RUNNING, PilotState.ENDED]
    assert (folder / f"{marks[0]}.stop").exists()
    (folder / f"{marks[0]}.ended").touch()
    assert look(marks[0]) is PilotState.ENDED
    (folder / "m9.began").write_text(str(time.time() - 600))
    assert look("m9") is PilotState.ENDED


def test_a_command_that_leaves_a_process_behind_has_answered() -> None:
    # As `ssh` does that keeps its connection for the next command.
    leaves = "sleep 600 & echo $! >&2; echo job 7"
    begun = time.monotonic()
    answer = do(EngineCommands().run("sh", "-c", leaves))
    assert answer.output == "job 7\n"
    assert time.monotonic() - begun < PATIENCE_S
    os.kill(int(answer.errors), signal.SIGKILL)


def test_what_a_command_says_on_several_lines_is_told_on_one(folder: Path) -> None:
    command = [sys.executable, "-c", PRINT, "no such queue:\n  gpux\n\n", "1"]
    with pytest.raises(EngineRefusal, match=r"^no such queue:; gpux$"):
        do(engine(submit={"command": command}).submit(wanted(folder)))
