"""The bytes of the keeper's protocol: those of version 0.1, both ways."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast, get_args

import pytest

from grass import config
from grass.keeper import json_text, protocol
from grass.keeper.codec import (
    BadMessage,
    BrokenLine,
    decode_entry,
    decode_verb,
    encode,
    name_of,
)
from grass.keeper.protocol import (
    AdoptVerb,
    Entry,
    ErrorEntry,
    ExitEntry,
    GiveBackVerb,
    HelloEntry,
    Notes,
    StartVerb,
    StateEntry,
    StopVerb,
    TaskRun,
    Verb,
    WarnedEntry,
)
from tests.support.building import typed

ADDED = {
    *("limit_signal", "limit_signal_before", "under", "input", "guest", "guest_ticks"),
    *(
        "usage",
        "port",
        "learns",
        "enforce",
        "mps",
        "memory_max",
        "cpu_max",
        "controllers",
        "task",
        "runner",
        "result",
        "most_told",
        "may_return",
        "script",
        "why",
        "missing",
        "title",
    ),
}
"""Keys that came later; an older keeper or daemon ignores them."""
LINES = Path(__file__).with_name("version_0_1.jsonl").read_bytes().splitlines()


def without_added(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in ADDED}


@pytest.mark.parametrize("line", LINES)
def test_a_message_is_written_as_version_0_1_wrote_it(line: bytes) -> None:
    read = decode_verb if line.startswith(b'{"v"') else decode_entry
    message = read(line)
    assert message is not None
    document = json.loads(encode(message), object_hook=without_added)
    assert json.dumps(document, separators=(",", ":")).encode() == line


def test_every_message_of_version_0_1_is_among_the_lines() -> None:
    documents = [json.loads(line) for line in LINES]
    later = {name_of(AdoptVerb), name_of(GiveBackVerb)}
    verbs = {name_of(kind) for kind in get_args(Verb)} - later
    assert {one.get("v") for one in documents} - {None} == verbs
    entries = {name_of(kind) for kind in get_args(Entry)}
    # The keys of an error had no fixed order; an exit and a state have several names.
    unlike = {name_of(kind) for kind in (ErrorEntry, ExitEntry, StateEntry)}
    unlike.add(name_of(WarnedEntry))  # It came later.
    written = {one.get("e") for one in documents} - {None}
    assert written == entries - unlike | {"ended", "exited"}


@pytest.mark.parametrize("line", LINES)
def test_a_key_of_a_later_version_is_ignored(line: bytes) -> None:
    read = decode_verb if line.startswith(b'{"v"') else decode_entry
    later = line[:-1] + b',"colour":{"green":[1]}}'
    assert read(later) == read(line)


def test_an_entry_of_a_later_version_is_passed_over() -> None:
    assert decode_entry(b'{"e":"tomorrow","id":"a"}') is None
    assert decode_entry(b'{"id":"a"}') is None


def test_what_a_worker_noted_comes_back_as_it_was() -> None:
    notes = Notes({"cpu": {"0": 10000}}, "/o", None, "b", 5)
    start = decode_verb(LINES[0])
    assert isinstance(start, StartVerb)
    received = decode_verb(encode(start._replace(meta=notes)))
    assert isinstance(received, StartVerb)
    [hello] = [one for one in map(decode_known, LINES) if isinstance(one, HelloEntry)]
    [state] = hello.attempts
    told = hello._replace(attempts=[state._replace(meta=cast("Notes", received.meta))])
    [known] = decode_known(encode(told).strip()).attempts  # type: ignore[union-attr]
    assert known.meta == notes


def test_a_task_arrives_as_it_was_sent() -> None:
    start = decode_verb(LINES[0])
    assert isinstance(start, StartVerb)
    task = TaskRun("key", "/f", "", "aGk=", "/r", {"A": "\udcff"}, "3.11", "f", False)
    assert decode_verb(encode(start._replace(task=task))) == start._replace(task=task)
    with pytest.raises(BadMessage, match="function"):
        decode_verb(LINES[0][:-1] + b',"task":{"key":"k"}}')


def decode_known(line: bytes) -> Entry | None:
    return decode_entry(line) if line.startswith(b'{"e"') else None


@pytest.mark.parametrize(
    "line",
    [b"", b"x", b"[1]", b"7", b'{"e":"able"} {}', b'{"e":', b"\xff", b"[" * 99999],
)
def test_a_line_that_is_no_object_is_broken(line: bytes) -> None:
    with pytest.raises(BrokenLine):
        decode_entry(line)
    with pytest.raises(BrokenLine):
        decode_verb(line)


def test_the_public_encoder_of_json_writes_the_same_where_the_fast_one_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    value = json.loads(LINES[0])
    fast = json_text._json_encoder()
    monkeypatch.setattr(json.encoder, "c_make_encoder", None)
    public = json_text._json_encoder()
    assert public.__name__ == "encode" != fast.__name__
    assert public(value) == fast(value)


def test_a_state_has_the_tags_that_a_keeper_writes() -> None:
    [hello] = [one for one in map(decode_known, LINES) if isinstance(one, HelloEntry)]
    for tag in ("state", "started", "exited", "waiting"):
        state = hello.attempts[0]._replace(e=tag)
        assert decode_entry(encode(state).strip()) == state
    assert decode_entry(b'{"e":"exit","id":"a"}') is None


def test_what_a_start_and_a_stop_leave_out_has_a_default() -> None:
    line = b'{"v":"start","id":"a","argv":["b"],"env":{},"cwd":"/","output":"o"}'
    start = StartVerb("a", ["b"], {}, "/", 0o022, "o")
    assert typed([decode_verb(line)]) == typed([start])
    assert typed([decode_verb(b'{"v":"stop","id":"a"}')]) == typed(
        [StopVerb("a", 15, 15.0, "cancelled")]
    )


def test_the_marker_is_one_name_in_all_packages() -> None:
    assert protocol.MARKER == config.MARKER


def test_white_space_around_an_object_does_no_harm() -> None:
    assert decode_entry(b'  {"e":"able"} \r') == decode_entry(b'{"e":"able"}')


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b'{"e":"started","id":"a","at":1}', "`started`"),
        (b'{"e":"exited","id":7,"at":1}', "`exited`: 7 is not a string"),
        (b'{"e":"exited","id":"a","at":"1"}', "'1' is not a whole number"),
        (b'{"e":"hello","attempts":[[]]}', "is not an object"),
        (b'{"e":"lease","cluster":"c"}', "`lease` without 'until'"),
    ],
)
def test_an_entry_that_makes_no_sense_is_refused(line: bytes, text: str) -> None:
    with pytest.raises(BadMessage, match=text):
        decode_entry(line)
