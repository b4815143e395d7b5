"""What is enforced, and where nothing can be."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.brokerage import Brokerage

from grass.broker.core.jobs import enforcing
from grass.errors import NeverFits
from grass.link.messages import Overran, Start
from grass.model.amounts import GIB

UNITS = "{cpu:8, ram:[32], gpu:1, vram:{'0':40}}"


@pytest.fixture
def gpus(broker: Brokerage) -> Brokerage:
    broker.leave()
    broker.join("lab", UNITS, enforces=("gpu-memory", "a-later-one"))
    assert broker.state.workers["lab"].enforces == ("gpu-memory",)
    return broker


def test_a_job_tells_its_worker_that_it_is_enforced(gpus: Brokerage) -> None:
    gpus.enqueue(require="{vram:8}", enforce="stop", worker="lab")
    (start,) = gpus.said(Start)
    assert start.enforce == "stop"


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        ({"require": "{ram:8}"}, "memory"),
        ({"require": "{cpu:2, ram:8}", "threads": 2}, "memory and cores"),
    ],
)
def test_a_job_of_which_nothing_can_be_enforced_is_refused(
    gpus: Brokerage, asked: dict[str, Any], what: str
) -> None:
    said = gpus.refused(
        NeverFits, lambda: gpus.enqueue(**asked, enforce="warn", worker="lab")
    )
    assert f"can enforce its {what}" in said


def test_a_part_that_cannot_be_enforced_is_said(gpus: Brokerage) -> None:
    job = gpus.enqueue(require="{vram:8, ram:8}", enforce="warn", worker="lab")
    spec = gpus.state.specs[gpus.state.jobs[job].spec]
    (hint,) = enforcing.hints(gpus.state, gpus.state.queues["default"], spec)
    assert hint.startswith("its memory cannot be enforced")


@pytest.mark.parametrize(
    ("share", "is_said"), [("0.25", True), ("1", False), ("0.25, vram:8", True)]
)
def test_a_share_that_is_no_cap_is_said(
    gpus: Brokerage, share: str, is_said: bool
) -> None:
    job = gpus.enqueue(require=f"{{gpu:{share}}}", enforce="warn", worker="lab")
    spec = gpus.state.specs[gpus.state.jobs[job].spec]
    queue = gpus.state.queues["default"]
    said = list(enforcing.hints(gpus.state, queue, spec))
    hint = "its share of a GPU's multiprocessors cannot be enforced"
    assert [one.startswith(hint) for one in said] == [True] * is_said
    gpus.join("fast", UNITS, enforces=("gpu-memory", "mps"))
    anywhere = replace(spec, worker=None)
    assert not list(enforcing.hints(gpus.state, queue, anywhere))


def test_nothing_is_enforced_of_gpus_that_were_only_declared(gpus: Brokerage) -> None:
    gpus.join("bare", "{cpu:2, gpu:1}", enforces=("gpu-memory", "mps"))
    asked: dict[str, Any] = {"require": "{gpu:0.5}", "enforce": "warn"}
    said = gpus.refused(NeverFits, lambda: gpus.enqueue(**asked, worker="bare"))
    assert "can enforce its GPUs" in said


def test_enforcing_nothing_is_said(gpus: Brokerage) -> None:
    job = gpus.enqueue(require="{cpu:1}", enforce="warn", worker="lab")
    spec = gpus.state.specs[gpus.state.jobs[job].spec]
    queue = gpus.state.queues["default"]
    (hint,) = enforcing.hints(gpus.state, queue, spec)
    assert hint.startswith("there is nothing to enforce")
    strict = replace(queue, enforce="warn")
    assert not list(enforcing.hints(gpus.state, strict, spec))


def test_cores_that_were_not_asked_for_are_not_enforced(gpus: Brokerage) -> None:
    gpus.enqueue(require="{cpu:1}", enforce="warn", worker="lab")


def test_an_overrun_is_an_event(gpus: Brokerage) -> None:
    job = gpus.enqueue(require="{vram:8}", enforce="warn", worker="lab")
    gpus.hear(Overran(gpus.name(job), "0", 12 * GIB, 8 * GIB), "lab")
    found = gpus.store.events(0, 99, None, ("overran",))
    assert [one.job for one in found] == [job]
    assert "12 GiB" in str(found[0].data)
