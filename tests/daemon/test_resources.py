"""Amounts, units and views: what is given out, to whom, and never twice."""

from collections.abc import Sequence

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import Document, GrassHome

pytestmark = pytest.mark.daemon


@pytest.fixture
def home(shared: GrassHome) -> GrassHome:
    """One daemon serves all tests of this file."""
    return shared


def enqueue_waiting(
    home: GrassHome, gate: Fifo, queue: str, request: str, count: int = 1
) -> list[int]:
    """Enqueue jobs that run until the gate lets them go."""
    line = f"read x < {gate}"
    reply = home.client.enqueue_many([line] * count, queue=queue, require=request)
    return list(range(reply["first"], reply["last"] + 1))


def free(home: GrassHome, kind: str) -> Document:
    units: Document = home.client.overview()["workers"][0]["free"][kind]
    return units


def allocations(home: GrassHome, ids: Sequence[int]) -> list[Document]:
    return [home.client.job(id)["allocation"] for id in ids]


def test_ten_tenths_are_exactly_one(home: GrassHome, gate: Fifo, news: Fifo) -> None:
    home.ok("create-queue", "q", "--json", "{slot:1}")
    line = f"read x < {gate}; echo {{id}} > {news}"
    reply = home.client.enqueue_many([line] * 11, queue="q", require="{slot:0.1}")
    ids = list(range(reply["first"], reply["last"] + 1))
    assert home.states(ids) == ["running"] * 10 + ["queued"]
    assert free(home, "slot") == {"0": 0}
    gate.tell()
    home.wait(int(news.hear()))
    assert home.state(ids[-1]) == "running"
    assert free(home, "slot") == {"0": 0}
    gate.tell(times=10)
    assert home.wait(*ids)["state"] == "succeeded"
    assert free(home, "slot") == {"0": 1}


def test_two_and_a_half_are_two_whole_units_and_half_of_a_third(
    home: GrassHome, gate: Fifo
) -> None:
    home.ok("create-queue", "q", "--json", "{gpu:4}")
    ids = enqueue_waiting(home, gate, "q", "{gpu:2.5}")
    ids += enqueue_waiting(home, gate, "q", "{gpu:0.5}", 2)
    ids += enqueue_waiting(home, gate, "q", "{gpu:1}")
    first, second, third, last = allocations(home, ids)
    assert sorted(first["gpu"].values()) == [0.5, 1, 1]
    shared = next(unit for unit, amount in first["gpu"].items() if amount == 0.5)
    assert second == {"gpu": {shared: 0.5}}
    assert list(third["gpu"].values()) == [0.5]
    assert last == {}
    assert home.state(ids[-1]) == "queued"
    gate.tell(times=4)
    home.wait(*ids)


def test_two_queues_that_name_one_unit_share_it(home: GrassHome, gate: Fifo) -> None:
    for queue in ("a", "b"):
        home.ok("create-queue", queue, "--json", "{gpu:{'0':1}}")
    [first] = enqueue_waiting(home, gate, "a", "{gpu:1}")
    [second] = enqueue_waiting(home, gate, "b", "{gpu:1}")
    [third] = enqueue_waiting(home, gate, "default", "{gpu:0.1}")
    assert home.states([first, second, third]) == ["running", "queued", "queued"]
    assert "gpu" in home.client.job(second)["reason"]
    gate.tell()
    home.wait(first)
    assert home.states([second, third]) == ["running", "queued"]
    gate.tell(times=2)
    home.wait(second, third)


def test_a_view_limits_its_own_queue_only(home: GrassHome, gate: Fifo) -> None:
    home.ok("create-queue", "whole", "--json", "{gpu:1}")
    home.ok("create-queue", "half", "--json", "{gpu:{'0':0.5}}")
    refused = home.run("enqueue", "half", "--json", "{gpu:0.6}", "--", "true")
    assert refused.returncode == 6
    ids = enqueue_waiting(home, gate, "half", "{gpu:0.5}", 2)
    ids += enqueue_waiting(home, gate, "whole", "{gpu:0.5}")
    assert home.states(ids) == ["running", "queued", "running"]
    gate.tell(times=3)
    home.wait(*ids)


def test_a_view_leaves_other_kinds_alone(home: GrassHome) -> None:
    home.ok("create-queue", "q", "--json", "{gpu:1}")
    id = home.enqueue("q", "--json", "{gpu:1,cpu:1,ram:0.001}", "--", "true")
    assert home.wait(id)["state"] == "succeeded"
    assert set(home.client.job(id)["attempts"][0]["allocation"]) == {
        "gpu",
        "cpu",
        "ram",
    }


def test_a_larger_amount_of_a_known_unit_is_an_error(home: GrassHome) -> None:
    home.ok("create-queue", "a", "--json", "{disk:[10]}")
    refused = home.run("create-queue", "b", "--json", "{disk:[11]}")
    assert refused.returncode == 2
    assert "wants 11 of disk 0, which has 10" in refused.stderr
    assert home.client.overview()["workers"][0]["capacity"]["disk"] == {"0": 10}


def test_declared_units_are_marked_and_leave_with_their_queue(home: GrassHome) -> None:
    made = home.run("create-queue", "q", "--json", "{gpu:2,printer:1}")
    assert "declared, not found: 2 gpu (0 found)" in made.stderr
    worker = home.client.overview()["workers"][0]
    assert worker["origin"]["gpu"] == {"0": "declared", "1": "declared"}
    assert "declared" in home.ok("show")
    home.ok("delete-queue", "q")
    assert set(home.client.overview()["workers"][0]["capacity"]) == {"cpu", "ram"}


def test_the_default_request_is_the_queues_else_one_core(home: GrassHome) -> None:
    home.ok("create-queue", "q", "--json", "{gpu:2}", "--default-require", "{gpu:2}")
    ids = [home.enqueue("q", "--", "true"), home.enqueue("--", "true")]
    ids.append(home.enqueue("q", "--require", "{}", "--", "true"))
    ids.append(home.enqueue("--require", "{cpu:0}", "--", "true"))
    home.wait(*ids)
    asked = [home.client.job(id)["request"] for id in ids]
    assert asked == [{"gpu": 2}, {"cpu": 1}, {}, {}]


def test_no_more_jobs_run_than_the_queue_allows(home: GrassHome, gate: Fifo) -> None:
    home.ok("create-queue", "q", "--max-running", "2")
    ids = enqueue_waiting(home, gate, "q", "{}", 3)
    assert home.states(ids) == ["running", "running", "queued"]
    assert "2" in home.client.job(ids[-1])["reason"]
    gate.tell(times=3)
    assert home.wait(*ids)["state"] == "succeeded"


@pytest.mark.parametrize(
    ("request_text", "number"),
    [("{gpu:2.5}", "2.5"), ("{gpu:0.5,printer:1}", "printer"), ("{cpu:999}", "999")],
)
def test_what_can_never_run_is_refused_with_the_number(
    home: GrassHome, request_text: str, number: str
) -> None:
    home.ok("create-queue", "q", "--json", "{gpu:2}")
    before = home.client.overview()["daemon"]["jobs"]
    refused = home.run("enqueue", "q", "--require", request_text, "--", "true")
    assert refused.returncode == 6
    assert number in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert home.client.overview()["daemon"]["jobs"] == before


def test_sizes_and_short_options_are_amounts_too(home: GrassHome) -> None:
    home.ok("create-queue", "q", "--json", "{gpu:2}")
    id = home.enqueue("q", "-g", "0.5", "-c", "1", "-m", "512M", "--", "true")
    assert home.client.job(id)["request"] == {"gpu": 0.5, "cpu": 1, "ram": 0.5}
    id = home.enqueue("q", "--require", "{ram:'256M'}", "-g0.25", "--", "true")
    assert home.client.job(id)["request"] == {"gpu": 0.25, "ram": 0.25}
    home.wait(id)


def test_a_short_option_keeps_the_default_core(home: GrassHome) -> None:
    id = home.enqueue("-m", "64M", "--", "true")
    assert home.client.job(id)["request"] == {"cpu": 1, "ram": 0.0625}


def test_never_two_jobs_on_one_slot(home: GrassHome) -> None:
    home.ok("create-queue", "q", "--json", "{slot:3}")
    lock = f"{home.desk}/lock.$GRASS_SLOT"
    line = f"set -C; echo $$ > {lock} || exit 9; env > /dev/null; rm {lock}"
    reply = home.client.enqueue_many([line] * 60, queue="q", require="{slot:1}")
    ended = home.client.wait([f"{reply['first']}-{reply['last']}"])
    assert [job["exit_code"] for job in ended] == [0] * 60
    assert free(home, "slot") == {"0": 1, "1": 1, "2": 1}


def test_higher_priority_starts_first(home: GrassHome, gate: Fifo) -> None:
    home.ok("create-queue", "q", "--json", "{slot:1}")
    [blocker] = enqueue_waiting(home, gate, "q", "{slot:1}")
    order = home.desk / "order"
    ids = [
        home.client.enqueue(
            f"echo {priority} >> {order}",
            queue="q",
            require="{slot:1}",
            priority=priority,
        )
        for priority in (0, 5, -1, 5)
    ]
    gate.tell()
    home.wait(blocker, *ids)
    assert order.read_text().split() == ["5", "5", "0", "-1"]
