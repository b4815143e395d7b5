"""A worker that sends what it likes: the broker lives, and nobody else's jobs change.

Messages are made field by field from what decides something in the broker: names of
attempts that are its own, another worker's, unplaced, huge or nearly well-formed,
times, counters, sizes and texts. `make fuzz` tries many more of them than the suite.
"""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.link import messages as m
from grass.link.frames import ESCAPED
from grass.model.amount_text import WHOLE
from grass.model.jobs.endings import OUT_OF_GPU_MEMORY, OUT_OF_HOST_MEMORY
from grass.model.times import LATEST
from tests.fuzz.dose import examples
from tests.fuzz.garbage import any_text, slipped_bytes, slipped_values, values
from tests.fuzz.hostile_peer import (
    CLUSTER,
    FREE,
    HOSTILE,
    OWN,
    PLACED,
    THIS_BOOT,
    Besieged,
)
from tests.support.building import WORKER

Document = dict[str, Any]


@pytest.fixture(scope="module")
def memory() -> Iterator[Path]:
    """A folder that costs no disk: there is a broker for every example."""
    folder = Path(mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    yield folder
    shutil.rmtree(folder)


def mostly(good: Any, odd: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Give something odd now and then: of a message with much of it nothing is read."""
    usual = good if isinstance(good, st.SearchStrategy) else st.just(good)
    return st.integers(0, 9).flatmap(lambda turn: odd if turn == 9 else usual)


EDGES = [0, -1, 65, 256, 2**31 + 1, LATEST + 1, 2**63 - 1, 2**63, 2**64 - 1]
whole = mostly(st.integers(1, 60), st.sampled_from(EDGES))
maybe_whole = st.one_of(st.none(), whole)
seconds = mostly(st.sampled_from([1.5, 30.0]), st.floats())
nasty = st.sampled_from(["\x1b[2J\n", "x" * 3000, "\udcff", "\0", ""])
text = mostly("a word", st.one_of(any_text, nasty))
maybe_text = st.one_of(st.none(), text)
units_said = st.dictionaries(
    st.sampled_from(["cpu", "gpu", "home", "k" * 65, "0"]),
    st.dictionaries(st.sampled_from(["0", "1", "x", ""]), whole, max_size=2),
    max_size=2,
)
one_core = st.just({"cpu": {"0": WHOLE}})
allocation = mostly(one_core, units_said)
FOUND = {"cpu": {"0": {"amount": WHOLE}, "1": {"amount": WHOLE}}}
found = mostly(
    FOUND,
    units_said.map(
        lambda said: {
            kind: {name: {"amount": has, "details": {"n": has}} for name, has in of}
            for kind, of in ((kind, units.items()) for kind, units in said.items())
        }
    ),
)


of_gpu = st.fixed_dictionaries({}, optional={"memory": whole, "utilization": seconds})
use = st.fixed_dictionaries(
    {},
    optional={
        "memory": whole,
        "cpu": seconds,
        "gpus": st.dictionaries(mostly("0", text), of_gpu, max_size=2),
        "note": text,
    },
)
scanned = st.fixed_dictionaries(
    {"end": whole, "size": whole},
    optional={
        "newlines": whole,
        "marks": st.lists(st.tuples(whole, whole), max_size=2),
        "count": whole,
        "matches": st.lists(st.tuples(whole, whole, st.binary(max_size=9)), max_size=2),
    },
)
live = st.integers(1, OWN + FREE).map(lambda job: f"{CLUSTER}.{job}.1")
jobs = st.one_of(st.integers(0, 9), st.sampled_from([10**6, 10**9, 10**18 - 1]))
numbers = st.one_of(st.integers(0, 4), st.sampled_from([900, 10**9 - 1, 10**18 - 1]))
clusters = st.sampled_from([CLUSTER, CLUSTER, CLUSTER, "f" * 16])
made = st.tuples(clusters, jobs, numbers).map(lambda of: ".".join(map(str, of)))
odd = st.sampled_from([f"{CLUSTER}.05.1", f"{CLUSTER}.\u0665.1", "5.1"])
own = st.integers(OWN + 1, OWN + FREE).map(lambda job: f"{CLUSTER}.{job}.1")
names = mostly(st.one_of(own, own, live, made), st.one_of(odd, any_text))
placed = mostly(st.sampled_from([0, PLACED]), whole)
CAUSES = ["", OUT_OF_GPU_MEMORY, OUT_OF_HOST_MEMORY]


def fields(
    kind: type[m.Message], **given: st.SearchStrategy[Any]
) -> st.SearchStrategy[Document]:
    """Give a message with these fields; those that have a default may be left out."""
    known = msgspec.structs.fields(kind)
    assert {one.name for one in known} == set(given), kind
    needed = {one.name: given[one.name] for one in known if one.required}
    more = {name: said for name, said in given.items() if name not in needed}
    tag = {"type": st.just(kind.__struct_config__.tag)}
    return st.fixed_dictionaries({**tag, **needed}, optional=more)


def about_attempts() -> dict[str, st.SearchStrategy[Document]]:
    """Give what a worker says of one attempt, by the type of the message."""
    paths = {"output": maybe_text, "stderr": maybe_text, "usage": maybe_text}
    offsets = {"output_offset": whole, "stderr_offset": whole}
    common = {"attempt": names, "placed_at": placed}
    return {
        "report": fields(
            m.Report,
            **common,
            **paths,
            **offsets,
            allocation=allocation,
            running=st.booleans(),
            pid=maybe_whole,
            started_at=maybe_whole,
            stopping=st.booleans(),
            suspended=st.booleans(),
            ran_s=seconds,
            title=text,
        ),
        "exited": fields(
            m.Exited,
            **common,
            **paths,
            at=whole,
            exit_code=maybe_whole,
            signal=maybe_whole,
            reason=maybe_text,
            lost=st.booleans(),
            output_bytes=whole,
            max_rss=maybe_whole,
            cpu_s=seconds,
            ran_s=seconds,
            peak=st.one_of(st.none(), use),
            cause=mostly(st.sampled_from(CAUSES), text),
            blamed=mostly("", names),
            to_peak_s=st.one_of(st.none(), seconds),
            marks=st.lists(whole, max_size=3),
            result=st.one_of(st.binary(max_size=40), st.just(bytes(1 << 17))),
        ),
        "overran": fields(m.Overran, **common, unit=text, used=whole, reserved=whole),
        "noted": fields(
            m.ProfileNoted,
            **common,
            memory=whole,
            ran_s=seconds,
            to_peak_s=seconds,
            late=st.booleans(),
        ),
        "started": fields(
            m.Started,
            **common,
            **paths,
            **offsets,
            pid=whole,
            at=whole,
            ran_s=seconds,
        ),
        "returned": fields(
            m.Returned,
            **common,
            reason=mostly("recalled", text),
            missing=mostly("", text),
        ),
    }


def messages() -> st.SearchStrategy[Any]:
    """Give anything that a worker can say, most of it nearly right."""
    about = about_attempts()
    few = {kind: st.lists(one, max_size=3) for kind, one in about.items()}
    of_process = st.dictionaries(mostly("0", text), whole, max_size=2)
    withheld = fields(
        m.Withheld,
        units=allocation,
        strangers=st.dictionaries(text, st.lists(text, max_size=2), max_size=2),
        faults=st.dictionaries(mostly("0", text), text, max_size=2),
        busy=st.frozensets(text, max_size=2),
        passing=st.frozensets(text, max_size=2),
        processes=st.dictionaries(whole, of_process, max_size=2),
    )
    hello = fields(
        m.Hello,
        worker=mostly(HOSTILE, st.one_of(st.just(WORKER), text)),
        name=text,
        boot=mostly(THIS_BOOT, text),
        found=found,
        running=few["report"],
        exited=few["exited"],
        started=few["started"],
        version=mostly(1, whole),
        labels=st.lists(mostly("fast", text), max_size=2),
        lease_s=st.one_of(st.none(), seconds),
        at=seconds,
        instance=mostly("", text),
        wall_at=whole,
        confirms_removals=st.booleans(),
        unable=mostly("", text),
        withheld=st.one_of(st.none(), withheld),
        enforces=st.lists(mostly("mps", text), max_size=3),
        shrinks=st.booleans(),
        runs_tasks=st.booleans(),
        searches=st.booleans(),
        time_left_s=st.one_of(st.none(), seconds),
    )
    others = st.one_of(
        withheld,
        fields(m.Heartbeat, at=seconds, wall_at=whole),
        fields(m.Readiness, unable=mostly("", text)),
        fields(
            m.UsageData,
            number=whole,
            devices=st.dictionaries(text, text, max_size=2),
            attempts=st.dictionaries(
                names, st.fixed_dictionaries({}, optional={"now": use}), max_size=2
            ),
        ),
        fields(m.Removed, number=whole, left=whole, reason=text),
        fields(
            m.OutputData,
            stream=whole,
            data=st.binary(max_size=9),
            missing=st.booleans(),
            scanned=st.one_of(st.none(), scanned),
            files=st.lists(st.one_of(st.none(), st.binary(max_size=9)), max_size=2),
        ),
        fields(
            m.TaskBytes,
            channel=whole,
            data=st.binary(max_size=9),
            attempt=names,
            end=st.booleans(),
            problem=text,
        ),
        fields(m.TaskBytesTaken, channel=whole, size=whole),
        fields(
            m.ReadBlob,
            number=whole,
            name=mostly("ab" * 32, text),
            offset=whole,
            length=whole,
        ),
        st.just({"type": "of a later version"}),
    )
    made = st.one_of(hello, hello, *about.values(), *about.values(), others)
    slipped = made.flatmap(lambda one: slipped_values([one]))
    return mostly(made, st.one_of(slipped, values))


def frame_of(documents: list[Any]) -> bytes:
    """Write documents as a frame, those that MessagePack cannot say as JSON."""
    parts = [_packed(one) for one in documents]
    return bytes((0x90 | len(parts),)) + b"".join(parts)


def _packed(document: Any) -> bytes:
    try:
        return msgspec.msgpack.encode(document)
    except (UnicodeError, OverflowError, RecursionError):
        text = json.dumps(document, default=repr).encode()
        return msgspec.msgpack.encode(msgspec.msgpack.Ext(ESCAPED, text))


def attack(memory: Path, *batches: list[Any], raw: bytes = b"\x90") -> None:
    besieged = Besieged(memory)
    try:
        frames = [frame_of(besieged.resolved(batch)) for batch in batches]
        besieged.attack([*frames, raw])
        besieged.restart()
    finally:
        besieged.close()


SAID = [frame_of([{"type": "heartbeat", "at": 1.5}]), frame_of([FOUND, {}])]


@examples(100)
@given(
    batches=st.lists(
        st.lists(messages(), min_size=1, max_size=4), min_size=2, max_size=6
    ),
    raw=st.one_of(st.binary(max_size=60), slipped_bytes(SAID)),
)
def test_a_hostile_worker_harms_only_itself(
    memory: Path, batches: list[list[Any]], raw: bytes
) -> None:
    attack(memory, *batches, raw=raw)


@pytest.mark.parametrize(
    "attempt",
    [f"{CLUSTER}.3.1000", f"{CLUSTER}.4.999999999", f"{CLUSTER}.10000000.1"],
)
def test_reports_of_attempts_that_were_never_given_change_nothing(
    memory: Path, attempt: str
) -> None:
    said = {"type": "report", "attempt": attempt, "allocation": {}, "running": True}
    hello: Document = {"type": "hello", "worker": HOSTILE, "name": "lab"}
    hello |= {"boot": THIS_BOOT, "found": FOUND, "running": [said], "exited": []}
    attack(memory, [hello])
