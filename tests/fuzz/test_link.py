"""Messages between broker and worker: what does not make sense is a `GrassError`."""

import contextlib
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

from grass.errors import GrassError
from grass.link.messages import ToBroker, ToWorker
from grass.worker.core.hello import WorkerIdentity
from grass.worker.core.prepare import Surroundings
from grass.worker.core.worker_core import WorkerCore
from tests.fuzz.dose import bounded, examples
from tests.fuzz.garbage import slipped_bytes, slipped_values
from tests.fuzz.messages import said_by_broker, said_by_keeper, said_by_worker
from tests.support.brokerage import SECOND, Brokerage, check
from tests.support.building import units
from tests.worker.lab import entry_of

AROUND = Surroundings("/out", "/home/me", "/bin/sh", {"PATH": "/bin"})
FRAMES = [msgspec.msgpack.encode(one) for one in said_by_worker("a" * 16)]
FRAMES += [msgspec.msgpack.encode(one) for one in said_by_broker()]


@examples(300)
@given(frame=st.one_of(st.binary(max_size=60), slipped_bytes(FRAMES)))
def test_a_frame_is_a_message_or_refused(frame: bytes) -> None:
    refusals = (msgspec.DecodeError, UnicodeDecodeError)
    for kind in (ToBroker, ToWorker):
        with bounded(), contextlib.suppress(*refusals):
            msgspec.msgpack.decode(frame, type=kind)


@pytest.fixture(scope="module")
def memory() -> Iterator[Path]:
    """A folder that costs no disk: there is a broker for every example."""
    folder = Path(mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    yield folder
    shutil.rmtree(folder)


def a_broker(folder: Path) -> Brokerage:
    """Give a broker with two jobs that run and two that wait."""
    broker = Brokerage(Path(mkdtemp(dir=folder)) / "grass.db", "{cpu:2}")
    for _ in range(4):
        broker.step(broker.new_job())
    broker.flush()
    return broker


def understood(document: Any, kind: Any) -> Any:
    """Give the message that a document holds, if it can be sent and holds one."""
    try:
        frame = msgspec.msgpack.encode(document)
    except (UnicodeError, OverflowError):
        return None
    try:
        return msgspec.msgpack.decode(frame, type=kind)
    except msgspec.DecodeError:
        return None


@examples(80)
@given(data=st.data())
def test_a_broker_takes_a_message_or_refuses_it(
    memory: Path, data: st.DataObject
) -> None:
    broker = a_broker(memory)
    seeds = said_by_worker(broker.state.cluster)
    documents = st.lists(
        st.one_of(st.sampled_from(seeds), slipped_values(seeds)), min_size=1, max_size=3
    )
    for document in data.draw(documents):
        message = understood(document, ToBroker)
        if message is not None:
            hear(broker, message)
    broker.restart()
    broker.store.close()


def hear(broker: Brokerage, message: ToBroker) -> None:
    """Do with a message what the broker's shell does; it must be able to restart."""
    with bounded():
        try:
            broker.step_hear(message)
            broker.core.advance()
            broker.core.decide(broker.now_us / SECOND)
            broker.store.commit(broker.core.take().changes)
            check(broker.state)
        except GrassError:
            broker.restart()


@examples(200)
@given(data=st.data())
def test_a_worker_takes_a_message_or_refuses_it(data: st.DataObject) -> None:
    who = WorkerIdentity("w", "desk", "boot", units("{cpu:2,ram:[4]}"))
    worker = WorkerCore(who, AROUND)
    seeds, lines = said_by_broker(), said_by_keeper()
    documents = st.lists(
        st.one_of(
            st.sampled_from(seeds), st.sampled_from(lines), slipped_values(seeds)
        ),
        min_size=1,
        max_size=5,
    )
    for document in data.draw(documents):
        with bounded():
            take(worker, document)
            worker.take()


def take(worker: WorkerCore, document: Any) -> None:
    if document in said_by_keeper():
        worker.from_keeper(entry_of(document))
        return
    message = understood(document, ToWorker)
    if message is None:
        return
    with contextlib.suppress(GrassError):
        worker.from_broker(message)


def test_the_messages_to_start_from_are_understood() -> None:
    for document in said_by_worker("a" * 16):
        assert understood(document, ToBroker) is not None, document
    for document in said_by_broker():
        assert understood(document, ToWorker) is not None, document


def test_a_broker_of_real_messages_goes_on(memory: Path) -> None:
    broker = a_broker(memory)
    for document in said_by_worker(broker.state.cluster):
        hear(broker, understood(document, ToBroker))
    broker.store.close()
