"""Changing a job in an editor, on a real terminal."""

import os
from pathlib import Path

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.screen import Screen

pytestmark = pytest.mark.daemon


def screen(home: GrassHome, editor: str, *words: str) -> Screen:
    """Run a command on a terminal; the texts of editors go to the desk."""
    surroundings = {**home.environment, "EDITOR": editor, "TMPDIR": str(home.desk)}
    surroundings.pop("VISUAL", None)
    return Screen([*home.grass, *words], surroundings)


def kept(home: GrassHome) -> list[Path]:
    return list(home.desk.glob("grass-job-*"))


def test_what_was_changed_in_the_editor_is_sent_and_nothing_else(
    shared: GrassHome,
) -> None:
    words = ("--hold", "--env", "A=1", "--priority", "3", "--", "echo", "a b")
    id = shared.enqueue(*words)
    before = shared.client.job(id)
    on = screen(shared, "sed -i 's/^priority.*/priority = 7/'", "edit", str(id))
    assert (on.ended(), on.seen) == (0, "edited 1 job\r\n")
    assert shared.client.job(id) == {**before, "priority": 7}
    assert shared.await_event("edited", id)["data"] == {"changed": ["priority"]}
    assert not kept(shared)


def test_an_editor_with_words_in_quotes_is_run_as_a_shell_does(
    shared: GrassHome,
) -> None:
    shared.add_program("my editor", 'sed -i "$1" "$2"')
    id = shared.enqueue("--hold", "--", "true")
    editor = "'my editor' 's/^name.*/name = \"new name\"/'"
    assert screen(shared, editor, "edit", str(id)).ended() == 0
    assert shared.client.job(id)["name"] == "new name"


def test_an_interrupt_while_the_editor_is_open_is_the_editors(
    shared: GrassHome,
) -> None:
    id = shared.enqueue("--hold", "--", "true")
    editor = "kill -INT $PPID; sed -i 's/^priority.*/priority = 7/'"
    on = screen(shared, editor, "edit", str(id))
    assert (on.ended(), on.seen) == (0, "edited 1 job\r\n")


def test_a_text_that_was_not_changed_changes_nothing(shared: GrassHome) -> None:
    id = shared.enqueue("--hold", "--", "true")
    on = screen(shared, "true", "edit", str(id))
    assert (on.ended(), on.seen) == (0, "nothing was changed\r\n")
    on = screen(shared, "false", "edit", str(id))
    assert on.ended() == 1
    assert "`false` failed; nothing was changed" in on.seen
    assert not kept(shared)


def test_a_refused_text_is_edited_again_or_kept(shared: GrassHome) -> None:
    id = shared.enqueue("--hold", "--", "true")
    wrong = "sed -i 's/^require.*/require = {cpu = 999}/; s/^retries.*/retries = 2/'"
    on = screen(shared, wrong, "edit", str(id))
    on.until("edit again? [Y/n] ")
    assert "grass: line " in on.seen
    assert "cpu: asked 999" in on.seen
    on.answer("y", "edit again? [Y/n] ")
    on.answer("n")
    assert on.ended() == 6
    [text] = kept(shared)
    assert f"nothing was changed (your text is kept in {text})" in on.seen
    assert "retries = 2\n" in text.read_text()
    assert text.stat().st_mode & 0o777 == 0o600
    assert shared.client.job(id)["retries"] == 0
    text.unlink()


def test_a_job_that_started_meanwhile_is_told_and_the_text_is_kept(
    shared: GrassHome, gate: Fifo
) -> None:
    id = shared.enqueue("--hold", "--", f"read x < {gate}")
    release = f"grass release {id}; sed -i 's/^priority.*/priority = 7/'"
    on = screen(shared, release, "edit", str(id))
    assert on.ended() == 5
    [text] = kept(shared)
    assert f"job {id} runs already (your text is kept in {text})" in on.seen
    assert "edit again" not in on.seen
    text.unlink()
    refused = screen(shared, "true", "edit", str(id))
    assert refused.ended() == 5
    assert f"job {id} is running (`grass cancel {id}` first)" in refused.seen
    gate.tell()
    shared.wait(id)


def test_a_job_is_run_again_as_the_editor_has_it(shared: GrassHome) -> None:
    id = shared.enqueue("--", "echo", "old")
    shared.wait(id)
    on = screen(shared, "true", "rerun", "--edit", str(id))
    assert on.ended() == 0
    assert on.seen == f"nothing was changed (`grass rerun {id}` runs it as it was)\r\n"
    editor = "sed -i 's/^command.*/command = \"echo new\"/'"
    on = screen(shared, editor, "rerun", "--edit", str(id))
    assert (on.ended(), on.seen) == (0, f"{id}\r\n")
    shared.wait(id)
    assert shared.logs(id) == "new\n"


def test_only_one_job_fits_into_an_editor(shared: GrassHome) -> None:
    ids = [str(shared.enqueue("--hold", "--", "true")) for _ in range(2)]
    on = screen(shared, "true", "edit", *ids)
    assert on.ended() == 2
    assert "an editor takes one job" in on.seen
    refused = shared.run("edit", ids[0], env={"EDITOR": "true"})
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "nothing to change was given (grass edit 7 --priority 5)" in refused.stderr
    assert os.listdir(shared.desk) == []
