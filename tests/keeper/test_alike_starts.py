"""A start that travels as what differs from another is the one that was meant."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.keeper.alike_starts import encode_like, read_like
from grass.keeper.codec import BadMessage, decode_verb, encode
from grass.keeper.protocol import Notes, StartVerb, TaskRun

ENV = {"PATH": "/bin", "HOME": "/home/me"}
TASK = TaskRun("key", "/f", "", "aGk=", "/r", {"GRASS_JOB_ID": "1"}, "3.11", "f")
START = StartVerb("a.1.1", ["x"], ENV, "/", 0o022, "/out", meta=Notes({}), task=TASK)

OTHER: dict[str, st.SearchStrategy[Any]] = {
    "id": st.just("a.2.1"),
    "argv": st.just(["x", "y"]),
    "env": st.sampled_from([{**ENV, "HOME": "/else"}, {"PATH": "/bin"}]),
    "stderr": st.sampled_from([None, "/errors"]),
    "time_limit": st.sampled_from([None, 5.0]),
    "cpus": st.sampled_from([None, [1]]),
    "after": st.sampled_from([None, "a.1.1"]),
    "meta": st.sampled_from(
        [Notes({"cpu": {"0": 1}}), Notes({}, "/o", placed_at=7), None]
    ),
    "task": st.sampled_from(
        [
            None,
            TASK._replace(env={"GRASS_JOB_ID": "2"}, inline=""),
            TASK._replace(env={}),
            TASK._replace(key="other", most_told=9),
        ]
    ),
}
CHANGES = st.lists(st.sampled_from(sorted(OTHER)), unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: OTHER[name] for name in names})
)


def as_read(start: StartVerb) -> StartVerb:
    read = decode_verb(encode(start))
    assert isinstance(read, StartVerb)
    return read


@given(CHANGES, CHANGES)
def test_what_differs_is_enough(before: dict[str, Any], change: dict[str, Any]) -> None:
    known = START._replace(**before)
    start = known._replace(**change)
    line = encode_like(start, known)
    if line is not None:
        assert read_like(json.loads(line), as_read(known)) == as_read(start)


def test_only_what_differs_is_sent() -> None:
    second = START._replace(
        id="a.2.1", env=dict(ENV), task=TASK._replace(env={"GRASS_JOB_ID": "2"})
    )
    line = encode_like(second, START)
    assert line is not None
    assert json.loads(line) == {
        "v": "like",
        "to": "a.1.1",
        "id": "a.2.1",
        "task": {"env": {"GRASS_JOB_ID": "2"}},
    }


@pytest.mark.parametrize(
    "line",
    [
        {"to": "a.9.1", "id": "a.2.1"},
        {"to": "a.1.1"},
        {"to": "a.1.1", "id": "a.2.1", "argv": []},
        {"to": "a.1.1", "id": "a.2.1", "env": []},
        {"to": "a.1.1", "id": "a.2.1", "task": None},
        {"to": "a.1.1", "id": "a.2.1", "task": {"env": {"A": 1}}},
        {"to": "a.1.1", "id": "a.2.1", "meta": 3},
        {"to": "a.1.1", "id": "a.2.1", "grace": "x"},
    ],
)
def test_a_line_that_is_not_understood_names_the_start(line: dict[str, Any]) -> None:
    with pytest.raises(BadMessage) as caught:
        read_like(line, as_read(START))
    assert (caught.value.name, caught.value.id) == ("start", line.get("id"))


def test_there_must_be_one_to_be_like() -> None:
    with pytest.raises(BadMessage, match="like none"):
        read_like({"to": "a.1.1", "id": "a.2.1"}, None)
