"""What every engine keeps: a fake and a real Slurm pass the same tests."""

from pathlib import Path

import pytest

from grass.errors import CannotAsk, EngineRefusal
from grass.model.pools import PilotState
from tests.engines.asking import LONG, do, look, wait_for, wanted
from tests.engines.conftest import Engine

ALIVE = (PilotState.PENDING, PilotState.RUNNING)


def test_a_check_submits_nothing(engine: Engine, folder: Path) -> None:
    request = wanted(folder, *LONG, gpus=1)
    assert do(engine.provider.check(request))
    assert look(engine.provider, request).state is PilotState.ABSENT


def test_what_can_never_run_is_refused_in_the_engines_words(
    engine: Engine, folder: Path
) -> None:
    request = wanted(folder, *LONG, gpus=9)
    with pytest.raises(EngineRefusal, match="node"):
        do(engine.provider.check(request))
    with pytest.raises(EngineRefusal, match="node"):
        do(engine.provider.submit(request))
    assert look(engine.provider, request).state not in ALIVE


def test_a_pilot_runs_its_command_and_ends(engine: Engine, folder: Path) -> None:
    text = "two words; $HOME 'quoted'"
    request = wanted(folder, "sh", "-c", 'echo "$1" > here', "sh", text)
    engine_id = do(engine.provider.submit(request))
    report = wait_for(engine.provider, request, PilotState.ENDED)
    assert report.engine_id == engine_id
    assert report.word
    assert (folder / "here").read_text() == f"{text}\n"


def test_a_pilot_is_found_by_its_mark_alone(engine: Engine, folder: Path) -> None:
    request = wanted(folder, *LONG)
    engine_id = do(engine.provider.submit(request))
    report = wait_for(engine.provider, request, PilotState.RUNNING)
    assert (report.mark, report.engine_id) == (request.mark, engine_id)
    do(engine.provider.cancel([engine_id]))
    wait_for(engine.provider, request, PilotState.ENDED)


def test_a_mark_that_was_never_submitted_is_absent(
    engine: Engine, folder: Path
) -> None:
    report = look(engine.provider, wanted(folder))
    assert (report.state, report.engine_id) == (PilotState.ABSENT, "")


def test_to_cancel_what_has_ended_is_no_error(engine: Engine, folder: Path) -> None:
    request = wanted(folder, "true")
    engine_id = do(engine.provider.submit(request))
    wait_for(engine.provider, request, PilotState.ENDED)
    do(engine.provider.cancel([engine_id, "99999"]))
    do(engine.provider.cancel([engine_id]))


def test_an_engine_that_hangs_says_nothing_of_pilots(
    engine: Engine, folder: Path
) -> None:
    request = wanted(folder, *LONG)
    engine_id = do(engine.provider.submit(request))
    wait_for(engine.provider, request, PilotState.RUNNING)
    engine.hang()
    for asked in (
        engine.hung.check(request),
        engine.hung.poll(request.name, [request.mark]),
        engine.hung.cancel([engine_id]),
    ):
        with pytest.raises(CannotAsk):
            do(asked)
    engine.heal()
    # A cancel that was not answered may still be carried out.
    assert look(engine.provider, request).engine_id == engine_id
    do(engine.provider.cancel([engine_id]))
    wait_for(engine.provider, request, PilotState.ENDED)


def test_a_submit_without_an_answer_is_settled_by_the_mark(
    engine: Engine, folder: Path
) -> None:
    request = wanted(folder, *LONG)
    engine.hang()
    with pytest.raises(CannotAsk):
        do(engine.hung.submit(request))
    engine.heal()
    report = look(engine.provider, request)
    assert report.state in {PilotState.ABSENT, *ALIVE}
    if report.engine_id:
        do(engine.provider.cancel([report.engine_id]))
