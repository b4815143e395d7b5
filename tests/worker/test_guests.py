"""A guest at its worker: no command, no output, and what is given back goes on."""

from grass.keeper.protocol import GiveBackVerb, StartVerb
from grass.link.messages import GiveBack, Start, Started
from tests.worker.lab import FIRST, ONE_CORE, Lab, ready


def enter(lab: Lab) -> StartVerb:
    start = Start(FIRST, 1, 1, "n", "p", (), False, ONE_CORE, guest=(7, 9))
    (verb,) = lab.broker(start).to_keeper
    assert isinstance(verb, StartVerb)
    return verb


def test_guest_reaches_the_keeper_without_a_command() -> None:
    verb = enter(ready())
    assert (verb.argv, verb.guest, verb.guest_ticks) == ([], 7, 9)


def test_queue_with_a_prefix_gives_a_guest_no_command() -> None:
    lab = ready()
    start = Start(
        *(FIRST, 1, 1, "n", "p", (), False, ONE_CORE, ("python", "main.py")),
        guest=(7, 9),
    )
    (verb,) = lab.broker(start).to_keeper
    assert verb.argv == []


def test_guest_has_no_output() -> None:
    lab = ready()
    enter(lab)
    effects = lab.keeper("started", id=FIRST, pid=7, ticks=9, at=5)
    assert effects.to_broker == [Started(FIRST, 7, 5, usage="/out/p/n/1/1.usage")]


def test_what_is_given_back_goes_to_the_keeper() -> None:
    lab = ready()
    enter(lab)
    assert lab.broker(GiveBack(FIRST, 3)).to_keeper == [GiveBackVerb(FIRST, 3)]
    assert lab.broker(GiveBack("x.9.9", 3)).to_keeper == []
