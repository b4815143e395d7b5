"""An attempt that is given less while it runs: the rest is free for others."""

from typing import Any

from grass.link.messages import Hello, KnownUnits, Returned, Shrink
from grass.model.amount_text import WHOLE
from tests.worker.lab import FIRST, SECOND, Lab, ready

ALONE = {"gpu": {"0": WHOLE}, "vram": {"0": 80 * WHOLE}}
PART = {"vram": {"0": 3 * WHOLE}}


def alone() -> Lab:
    lab = ready()
    lab.broker(KnownUnits(ALONE))
    lab.start(FIRST, ALONE)
    lab.keeper("started", id=FIRST, pid=7, ticks=9, at=5, since=100.0)
    return lab


def is_returned(effects: Any) -> bool:
    return any(isinstance(one, Returned) for one in effects.to_broker)


def test_what_it_has_no_more_is_free() -> None:
    lab = alone()
    assert is_returned(lab.start(SECOND, PART))
    lab.broker(Shrink(FIRST, PART))
    assert not is_returned(lab.start(SECOND, {"vram": {"0": 77 * WHOLE}}))
    lab.keeper("exited", id=FIRST, code=0)
    lab.keeper("exited", id=SECOND, code=0)
    assert not is_returned(lab.start(f"{FIRST[:-3]}9.1", ALONE))


def test_a_hello_says_that_it_is_understood_and_reports_what_is_left() -> None:
    lab = alone()
    lab.broker(Shrink(FIRST, PART))
    hello = lab.reported()
    assert isinstance(hello, Hello)
    assert hello.shrinks
    assert [one.allocation for one in hello.running] == [PART]


def test_it_never_gets_more() -> None:
    lab = alone()
    lab.broker(Shrink(FIRST, PART))
    lab.broker(Shrink(FIRST, ALONE))
    lab.broker(Shrink(SECOND, PART))
    assert [one.allocation for one in lab.reported().running] == [PART]
