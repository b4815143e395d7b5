"""Arrays: one job for each index, as many at a time as their cap allows."""

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import GrassHome

pytestmark = pytest.mark.daemon

NOTHING = ("--require", "{}")
"""A request that the number of cores does not limit."""


def test_each_member_knows_its_index(shared: GrassHome) -> None:
    line = "echo {index} $GRASS_ARRAY_INDEX $MINE"
    ids = shared.enqueue_array(
        "--array", "0-90:30", "--env", "MINE=x{index}", "--output", "member-{index}",
        "--", "sh", "-c", line,
    )  # fmt: skip
    assert shared.wait(*ids)["state"] == "succeeded"
    indices = [0, 30, 60, 90]
    assert [shared.client.job(id)["index"] for id in ids] == indices
    assert {shared.client.job(id)["array"] for id in ids} == {ids[0]}
    for index in indices:
        written = (shared.desk / f"member-{index}").read_text()
        assert written == f"{index} {index} x{index}\n"


def test_indices_may_be_a_list_and_a_job_of_its_own_has_none(shared: GrassHome) -> None:
    ids = shared.enqueue_array(*NOTHING, "--array", "1,3,7-9", "--", "true")
    assert [shared.client.job(id)["index"] for id in ids] == [1, 3, 7, 8, 9]
    alone = shared.enqueue("--", "sh", "-c", "echo ${GRASS_ARRAY_INDEX-none} {index}")
    shared.wait(*ids, alone)
    assert shared.logs(alone) == "none {index}\n"
    assert shared.client.job(alone)["array"] is None


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--array", "9-1", "--", "true"], 2, "9-1"),
        (["--array", "1-3", "--", "echo", "{gpu}"], 2, "gpu"),
        (["--array", "1-3", "-c", "999", "--", "true"], 6, "999"),
        (["--max-fails", "3", "--", "true"], 2, "--max-fails"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_bad_array_adds_no_job(
    shared: GrassHome, words: list[str], code: int, said: str
) -> None:
    before = shared.client.overview()["daemon"]["jobs"]
    refused = shared.run("enqueue", *words, input="true\n")
    assert (refused.returncode, refused.stdout) == (code, ""), refused.stderr
    assert said in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert shared.client.overview()["daemon"]["jobs"] == before


def test_a_capped_array_leaves_room_for_jobs_of_the_same_shape(
    shared: GrassHome, gate: Fifo
) -> None:
    line = f"read x < {gate}"
    ids = shared.enqueue_array(*NOTHING, "--array", "1-5%2", line)
    states = ["running", "running", "queued", "queued", "queued"]
    assert shared.states(ids) == states
    assert "array" in shared.reason(ids[2])
    same = shared.enqueue(*NOTHING, line)
    assert shared.state(same) == "running"
    gate.tell(times=6)
    assert shared.wait(*ids, same)["state"] == "succeeded"


def test_the_cap_holds_after_a_kill(shared: GrassHome, gate: Fifo, news: Fifo) -> None:
    line = f"echo {{index}} > {news}; read x < {gate}"
    ids = shared.enqueue_array(*NOTHING, "--array", "1-6%2", line)
    started = [news.hear(), news.hear()]
    shared.replace_daemon()
    assert shared.states(ids) == ["running"] * 2 + ["queued"] * 4
    for more in range(1, 5):
        gate.tell()
        started.append(news.hear())
        # As many have ended as were let go, unless the last one is not told yet.
        running = shared.states(ids).count("running")
        assert running <= 2, more
    gate.tell(times=2)
    assert shared.wait(*ids)["state"] == "succeeded"
    assert sorted(started) == list("123456")


def test_a_thousand_come_together_and_are_told_apart(shared: GrassHome) -> None:
    shared.ok("pause")
    ids = shared.enqueue_array("--array", "1-1000", "--name", "many", "--", "true")
    assert len(ids) == 1000
    span = f"{ids[0]}-{ids[-1]}"
    assert f"would cancel 1000 jobs: {span}" in shared.ok("cancel", "--dry-run", span)
    shared.kill_daemon()
    assert shared.ok("show", "-q", "--all", "name~^many$").split() == list(
        map(str, ids)
    )
    shared.ok("cancel", "--yes", "name~^many$")
    assert shared.client.overview()["daemon"]["jobs"]["queued"] == 0


def test_one_member_may_go_its_own_way(shared: GrassHome, gate: Fifo) -> None:
    shared.ok("pause")
    ids = shared.enqueue_array(*NOTHING, "--array", "1-3%1", f"read x < {gate}")
    shared.ok("cancel", str(ids[0]))
    shared.ok("edit", str(ids[2]), "--priority", "5")
    shared.ok("resume")
    assert shared.states(ids) == ["cancelled", "queued", "running"]
    gate.tell(times=2)
    assert shared.wait(*ids[1:])["state"] == "succeeded"


def test_a_job_may_wait_for_a_whole_array(shared: GrassHome, gate: Fifo) -> None:
    ids = shared.enqueue_array(*NOTHING, "--array", "1-3", f"read x < {gate}")
    after = shared.enqueue("--after", f"{ids[0]}-{ids[-1]}", "--", "true")
    assert shared.state(after) == "waiting"
    gate.tell(times=3)
    assert shared.wait(*ids, after)["state"] == "succeeded"
