"""Resources as values: what they are written as, what is affordable, what is taken."""

import copy
import pickle
import time

import pytest

from grass.errors import UsageError
from grass.resource import (
    CPU,
    ONE_INSTANCE,
    REJECT,
    ZERO,
    Capacity,
    Cores,
    Gpu,
    Kind,
    Memory,
    Node,
    Reject,
    Resource,
    Token,
    Vram,
    WTime,
    capacity_of,
    counted,
    given,
)
from grass.resource.wall_time import RUNS


def test_zero_is_affordable_to_all_and_affords_nothing() -> None:
    assert repr(ZERO) == "ZERO"
    assert ZERO.request(ZERO)
    assert Node(1, 1).request(ZERO)
    assert repr(Node(1, 1).alloc(ZERO)) == "ZERO"
    assert not ZERO.request(Node(1, 1))
    with pytest.raises(ValueError, match="Cannot alloc"):
        ZERO.alloc(Node(1, 1))


def test_cores_are_counted_and_an_allocation_names_them() -> None:
    cores = Cores(16)
    assert repr(cores) == "Cores(16)"
    assert repr(CPU([9, 6, 7])) == "CPU([6, 7, 9])"
    assert cores.request(Cores(16))
    assert not cores.request(Cores(17))
    with pytest.raises(ValueError, match=r"cannot allocate 17 core\(s\)"):
        cores.alloc(Cores(17))
    taken = cores.alloc(Cores(3))
    assert len(taken.c) == 3
    assert taken.c.isdisjoint(cores.c)
    assert not cores.request(Cores(14))
    cores.dealloc(taken)
    assert len(cores.c) == cores.N == 16


def test_memory_is_written_in_gibibytes_or_as_a_size() -> None:
    memory = Memory(64)
    assert repr(Memory("512M")) == "Memory(0.5)"
    assert memory.request(Memory("64G"))
    assert not memory.request(Memory(65))
    with pytest.raises(ValueError, match="cannot allocate"):
        memory.alloc(Memory(65))
    taken = memory.alloc(Memory(16))
    assert (taken.m, memory.m, memory.M) == (16, 48, 64)
    assert not memory.request(Memory(50))
    memory.dealloc(taken)
    assert memory.m == memory.M == 64


def test_time_runs_out_and_is_not_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "time", lambda: now)
    limit, left = WTime(T="1:56:40"), WTime(T=7000, countdown=True)
    now += 2
    assert repr(limit) == repr(WTime(T=7000)) == "WTime(T='01:56:40')"
    assert repr(left) == "WTime(T='01:56:38')"
    assert left.request(WTime(T=6998))
    assert not left.request(WTime(T=6999))
    assert left.request(WTime(T=9000, softT=60))
    assert left.alloc(WTime(T=3)).T == 3
    assert WTime(T="2-00:00:01").T == 172_801
    with pytest.raises(ValueError, match="`1:30` is not a time"):
        WTime(T="1:30")


def test_the_time_of_a_group_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "time", lambda: now)
    left, asked = WTime(T=7000, countdown=True), WTime(group="of this test")
    for short in (left.alloc(asked) for _ in range(RUNS)):
        now += 9
        left.dealloc(short)
    taken = [left.alloc(asked) for _ in range(RUNS)]
    assert repr(taken[0]) == repr(asked) == "WTime(group='of this test')"
    now += 12
    for one in taken:
        left.dealloc(one)
    known = left.alloc(asked)
    assert (known.T, known.softT) == (12, 12)
    assert repr(asked) == "WTime(T='00:00:12')"
    now += 7000
    assert not left.request(asked)
    with pytest.raises(ValueError, match="needs a time or a group"):
        WTime(softT=3)


def test_the_limit_of_a_group_has_room_for_slower_runs() -> None:
    asked = WTime(group="of different lengths")
    for seconds in (10, 20, 10, 20, 10, 20, 10):
        asked.note_run(seconds)
    assert asked.known() is None
    asked.note_run(20)
    known = asked.known()
    assert known is not None
    assert (known.T, known.softT) == (42, 26)


def test_a_token_is_there_or_not() -> None:
    token = Token("A")
    assert repr(token) == "Token('A')"
    assert token.request(Token("A"))
    assert not token.request(Token("B"))
    assert token.alloc(Token("A")) == token
    assert token.request(Token("A"))
    with pytest.raises(ValueError, match="does not match"):
        token.alloc(Token("B"))


def test_a_capacity_counts_who_is_there() -> None:
    capacity = Capacity(1)
    assert (repr(Capacity(0)), repr(ONE_INSTANCE)) == ("Capacity(0)", "ONE_INSTANCE")
    assert capacity.request(ONE_INSTANCE)
    assert capacity.alloc(ONE_INSTANCE).v == -1
    assert capacity.v == 0
    with pytest.raises(ValueError, match="has no capacity left"):
        capacity.alloc(ONE_INSTANCE)
    capacity.dealloc(ONE_INSTANCE)
    assert capacity.v == capacity.V == 1


def test_what_rejects_affords_nothing_and_takes_back() -> None:
    assert not REJECT.request(ZERO)
    assert REJECT & Cores(1) is REJECT
    rejecting = Reject(Memory(8))
    assert repr(rejecting) == "Reject(Memory(8))"
    rejecting.dealloc(Memory(4))
    assert not rejecting.request(Memory(8))
    with pytest.raises(ValueError, match="it gives nothing"):
        rejecting.alloc(ZERO)
    assert rejecting.eject() == Memory(12)


def test_parts_are_taken_together_or_not_at_all() -> None:
    node = Cores(6) & Memory(16)
    assert repr(Cores(3) & Memory(16)) == "Cores(3) & Memory(16)"
    assert node.request(Memory(8))
    assert node.request(Cores(3) & Memory(8))
    assert not node.request(Cores(9))
    with pytest.raises(ValueError, match="cannot allocate"):
        node.alloc(Cores(3) & Memory(17))
    assert len(node.c) == 6
    with pytest.raises(ValueError, match="does not have the same shape"):
        node.alloc(WTime(T=3))
    taken = node.alloc(Cores(3) & Memory(8))
    assert (len(taken.c), taken.m, len(taken.c | node.c), node.m) == (3, 8, 6, 8)
    assert not node.request(Cores(3) & Memory(9))
    node.dealloc(taken)
    assert (len(node.c), node.m) == (6, 16)


def test_comparison_asks_what_is_affordable() -> None:
    assert Node(16, 28) >= Cores(3)
    assert Cores(3) <= Node(16, 28)
    assert Cores(3) < Cores(4)
    assert Cores(4) > Cores(3)
    assert Cores(3) & Memory(1) == Memory(1) & Cores(3)
    assert Cores(3) != Cores(4)


def test_two_parts_of_one_kind_are_refused_with_the_next_step() -> None:
    with pytest.raises(ValueError, match=r"both sides of .* have cpu: ask for the sum"):
        _ = Cores(3) & Memory(1) & CPU(2)


def test_an_amount_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot be negative"):
        Memory(-1)
    with pytest.raises(UsageError, match="ram must be a number"):
        Memory("much")


def test_what_is_asked_for_is_counted_by_kind() -> None:
    asked = Gpu(0.5) & Vram("8G") & Cores(2) & Kind("printer", 1) & Memory(0)
    assert counted(asked) == (
        ("cpu", 20_000),
        ("gpu", 5_000),
        ("printer", 10_000),
        ("vram", 80_000),
    )
    assert repr(asked) == (
        "Gpu(0.5) & Vram(8) & Cores(2) & Kind('printer', 1) & Memory(0)"
    )


def test_a_machine_has_units_of_each_kind() -> None:
    assert capacity_of(Cores([4, 6]) & Memory(28) & Gpu(1.5)) == {
        "cpu": {"4": 10_000, "6": 10_000},
        "ram": {"0": 280_000},
        "gpu": {"0": 10_000, "1": 5_000},
    }


def test_what_was_given_names_its_units() -> None:
    held = given({"cpu": {"10": 10_000, "9": 10_000}, "gpu": {"1": 5_000}})
    assert repr(held) == "CPU([9, 10]) & Gpu(0.5)"
    assert (held.N, held.c, held.kind) == (2, {9, 10}, "cpu")
    assert held.parts["gpu"].units == ["1"]


class Licence(Resource):
    """A kind with rules of its own."""

    def __init__(self, seats: int) -> None:
        super().__init__()
        self.seats = seats

    def _repr(self) -> str:
        return f"Licence({self.seats})"

    def _request(self, res: "Licence") -> bool:
        return self.seats >= res.seats

    def _alloc(self, res: "Licence") -> "Licence":
        self.seats -= res.seats
        return Licence(res.seats)

    def _dealloc(self, res: "Licence") -> None:
        self.seats += res.seats


def test_a_class_of_the_users_own_is_a_part_like_any_other() -> None:
    all_there_is = Cores(2) & Licence(3)
    taken = all_there_is.alloc(Licence(2))
    assert repr(taken) == "Licence(2)"
    assert all_there_is.seats == 1
    assert not all_there_is.request(Licence(2))
    all_there_is.dealloc(taken)
    assert all_there_is.seats == 3


def test_a_class_without_rules_says_which_one_is_missing() -> None:
    class Bare(Resource):
        pass

    with pytest.raises(NotImplementedError, match="Bare has no `_request`"):
        Bare().request(Bare())


def test_resources_are_copied_and_pickled() -> None:
    node = Node(2, 4) & WTime(T=60) & Licence(1)
    for other in (copy.deepcopy(node), pickle.loads(pickle.dumps(node))):
        assert repr(other) == repr(node)
        other.alloc(Cores(1) & Memory(1))
    assert (len(node.c), node.m) == (2, 4)
