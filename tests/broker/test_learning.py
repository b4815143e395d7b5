"""Attempts are samples: what the broker learns of a type, and keeps."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.brokerage import ME, Brokerage
from tests.support.building import BOOT, WORKER

from grass.broker.core.calls import (
    Edit,
    ForgetProfiles,
    ImportProfiles,
    NoteInnerType,
)
from grass.errors import NotFound, ProtocolError
from grass.link.messages import Hello, ProfileNoted, Shrink, Start
from grass.model.amount_text import WHOLE
from grass.model.amounts import GIB
from grass.model.jobs.endings import OUT_OF_GPU_MEMORY
from grass.model.jobs.spec import JobPatch
from grass.model.usage.attempt_usage import ResourceUse, UnitUse
from grass.model.usage.profiles import MeasuredRun, Profile
from grass.model.worker import Unit
from grass.queries.job_documents import why_waiting
from grass.queries.profile_documents import profile_documents

H200, A100 = "NVIDIA H200", "NVIDIA A100"


@pytest.fixture
def broker(broker_of: Callable[[str], Brokerage]) -> Brokerage:
    broker = broker_of("{cpu:4}")
    found = {
        "cpu": {str(core): Unit(WHOLE) for core in range(4)},
        "gpu": {"0": Unit(WHOLE, {"name": H200}), "1": Unit(WHOLE, {"name": A100})},
        "vram": {"0": Unit(140 * WHOLE), "1": Unit(80 * WHOLE)},
    }
    broker.hear(Hello(WORKER, "desk", BOOT, found, [], []))
    return broker


def peak(gib: float | None, unit: str = "0") -> ResourceUse:
    memory = None if gib is None else int(gib * GIB)
    return ResourceUse(GIB, gpus={unit: UnitUse(memory)})


def run(broker: Brokerage, gib: float | None, code: int = 0, **fields: Any) -> int:
    """Have a job run on the first GPU to its end, and use so much of it."""
    asked = {"auto_vram": True, "request": (), "gpu_model": "H200", **fields}
    job = broker.enqueue("python", "train.py", **asked)
    broker.start(job)
    measured = None if gib is None else peak(gib)
    broker.exit(job, code, peak=measured, ran_s=60.0)
    return job


def profile(broker: Brokerage, type: str = "train.py", model: str = H200) -> Profile:
    return broker.state.profiles.of(type)[model]


def test_what_an_attempt_used_is_learned_for_its_type_and_gpu(
    broker: Brokerage,
) -> None:
    job = run(broker, 3)
    assert [one.job_type for one in broker.state.profiles] == ["train.py"]
    (sample,) = profile(broker).samples
    assert (sample.job, sample.peak, sample.ran_s) == (job, 3 * GIB, 60.0)
    assert broker.state.profiles.amounts("train.py") == {H200: 32_500}


def test_jobs_that_do_not_ask_for_it_are_not_learned_from(broker: Brokerage) -> None:
    run(broker, 3, auto_vram=False, request=(("vram", WHOLE),))
    assert list(broker.state.profiles) == []


def test_a_job_with_a_type_is_learned_from_whatever_it_asks_for(
    broker: Brokerage,
) -> None:
    run(broker, 3, auto_vram=False, request=(("vram", WHOLE),), job_type="fit")
    assert profile(broker, "fit").runs == 1


def test_models_are_told_apart(broker: Brokerage) -> None:
    run(broker, 3)
    job = broker.enqueue(
        "python", "train.py", auto_vram=True, request=(), gpu_model="A100"
    )
    broker.start(job)
    broker.exit(job, 0, peak=peak(2, "1"))
    assert broker.state.profiles.amounts("train.py") == {H200: 32_500, A100: 22_500}


def test_an_attempt_without_a_measured_peak_tells_nothing(broker: Brokerage) -> None:
    run(broker, None)
    assert profile(broker).samples == []
    assert broker.state.profiles.amounts("train.py") == {}


def test_after_two_that_tell_nothing_nobody_waits_for_a_profile(
    broker: Brokerage,
) -> None:
    run(broker, None, 1)
    assert broker.state.profiles.amounts("train.py") == {}
    run(broker, 0.5, 1)
    (amount,) = broker.state.profiles.amounts("train.py").values()
    assert amount > 140 * WHOLE
    run(broker, 3)
    assert profile(broker).failures == 0
    assert broker.state.profiles.amounts("train.py") == {H200: 32_500}


def test_only_the_last_samples_are_kept(broker: Brokerage) -> None:
    for _ in range(52):
        run(broker, 3)
    assert (len(profile(broker).samples), profile(broker).runs) == (50, 52)


def test_a_retry_is_a_sample_of_its_own(broker: Brokerage) -> None:
    job = run(broker, 2, 1, retries=1)
    broker.start(job)
    broker.exit(job, 0, peak=peak(4))
    assert [one.end for one in profile(broker).samples] == ["failed", "succeeded"]


def test_a_forgotten_type_is_measured_again(broker: Brokerage) -> None:
    run(broker, 3)
    broker.call(ForgetProfiles(ME, ["train.py"]))
    assert list(broker.state.profiles) == []
    run(broker, 2)
    assert profile(broker).runs == 1


def test_a_type_that_is_unknown_is_not_forgotten_nor_any_other(
    broker: Brokerage,
) -> None:
    run(broker, 3)
    forget = ForgetProfiles(ME, ["train.py", "other"])
    assert "`other`" in broker.refused(NotFound, lambda: broker.call(forget))


def test_imported_profiles_replace_those_of_their_type_and_model(
    broker: Brokerage,
) -> None:
    run(broker, 3)
    other = Profile("train.py", A100, [MeasuredRun(1, 0, GIB)], 1)
    again = Profile("train.py", H200, [MeasuredRun(2, 0, 9 * GIB)], 5)
    broker.call(ImportProfiles(ME, [other, again]))
    assert list(broker.state.profiles) == [other, again]


def begun(broker: Brokerage) -> int:
    job = broker.enqueue(
        "python", "train.py", auto_vram=True, request=(), gpu_model="H200"
    )
    broker.start(job)
    return job


def note(broker: Brokerage, job: int, gib: float) -> None:
    broker.hear(ProfileNoted(broker.name(job), int(gib * GIB), 12.0, 2.0))


def test_an_attempt_that_runs_is_learned_from_and_its_end_replaces_that(
    broker: Brokerage,
) -> None:
    job = begun(broker)
    note(broker, job, 3)
    (sample,) = profile(broker).samples
    assert (sample.end, sample.peak, sample.to_peak_s) == ("running", 3 * GIB, 2.0)
    note(broker, job, 4)
    broker.exit(job, 0, peak=peak(5), ran_s=90.0, to_peak_s=70.0, marks=(1, 2))
    (sample,) = profile(broker).samples
    assert (sample.end, sample.peak, sample.marks) == ("succeeded", 5 * GIB, (1, 2))
    assert profile(broker).runs == 1


def test_what_is_known_of_a_function_holds_for_the_job_that_runs_it(
    broker: Brokerage,
) -> None:
    run(shrinking(broker), 3, job_type="a.py::fit")
    asked: dict[str, Any] = {"auto_vram": True, "request": (), "gpu_model": "H200"}
    jobs = [broker.enqueue("python", "a.py", **asked) for _ in range(2)]
    broker.start(jobs[0])
    assert broker.running() == jobs[:1]
    assert not broker.call(NoteInnerType(ME, jobs[0], "other")).changed
    assert not broker.call(NoteInnerType(ME, jobs[1], "a.py::fit")).changed
    assert broker.call(NoteInnerType(ME, jobs[0], "a.py::fit")).changed
    assert broker.state.profiles.amounts("a.py") == {H200: 32_500}
    assert broker.running() == jobs
    broker.exit(jobs[0], 0, peak=peak(6), ran_s=60.0)
    broker.start(jobs[1])
    # What it was measured to use itself counts more.
    assert not broker.call(NoteInnerType(ME, jobs[1], "a.py::fit")).changed
    assert broker.state.profiles.amounts("a.py") != {H200: 32_500}


def test_a_job_that_is_given_another_type_does_not_wait_for_the_first_one(
    broker: Brokerage,
) -> None:
    run(broker, 3, job_type="known")
    jobs = auto(broker, 2)
    broker.start(jobs[0])
    assert broker.running() == jobs[:1]
    broker.call(Edit(ME, jobs[1:], JobPatch(job_type="known", gpu_model="A100")))
    assert broker.running() == jobs
    broker.start(jobs[1])
    broker.exit(jobs[1], 0, peak=peak(2, "1"), ran_s=60.0)
    assert profile(broker, "known", A100).samples[0].peak == 2 * GIB


def test_a_job_whose_memory_is_said_takes_over_nothing(broker: Brokerage) -> None:
    run(broker, 3, job_type="a.py::fit")
    job = broker.enqueue("python", "a.py", require="{vram:9}")
    assert not broker.call(NoteInnerType(ME, job, "a.py::fit")).changed


def test_what_was_noted_of_a_run_stays_true_when_it_fails(broker: Brokerage) -> None:
    job = begun(broker)
    note(broker, job, 3)
    broker.exit(job, 1, peak=peak(4))
    assert profile(broker).failures == 0
    assert broker.state.profiles.amounts("train.py") == {H200: 42_500}


def test_one_for_which_a_whole_gpu_is_too_small_says_nothing_of_others(
    broker: Brokerage,
) -> None:
    job = begun(broker)
    broker.exit(job, 1, peak=peak(139), cause=OUT_OF_GPU_MEMORY)
    assert (profile(broker).samples, profile(broker).failures) == ([], 1)
    run(broker, 2)
    assert broker.state.profiles.amounts("train.py") == {H200: 22_500}


def test_a_whole_share_with_a_part_of_the_memory_is_no_whole_gpu(
    broker: Brokerage,
) -> None:
    run(broker, 2)
    job = broker.enqueue(
        "python", "train.py", auto_vram=True, require="{gpu:1}", gpu_model="H200"
    )
    broker.start(job)
    broker.exit(job, 1, peak=peak(2), cause=OUT_OF_GPU_MEMORY)
    assert profile(broker).samples[-1].end == "out-of-memory"


def test_one_that_ran_out_of_memory_had_too_little(broker: Brokerage) -> None:
    run(broker, 2)
    job = broker.enqueue(require="{vram:8}", job_type="train.py", gpu_model="H200")
    broker.start(job)
    broker.exit(job, 1, peak=peak(7), cause=OUT_OF_GPU_MEMORY, ran_s=5.0)
    last = profile(broker).samples[-1]
    assert (last.end, last.peak, last.ran_s) == ("out-of-memory", 8 * GIB, 5.0)
    # What it had is no peak: nobody saw so much in use.
    (document,) = profile_documents(broker.state.profiles, "train.py")
    assert document["peak"] == 2 * GIB
    assert broker.state.profiles.amounts("train.py") == {H200: 12 * WHOLE}


def test_nothing_is_learned_from_the_fault_of_another(broker: Brokerage) -> None:
    job = begun(broker)
    other = broker.name(job)
    broker.exit(job, 1, peak=peak(7), cause=OUT_OF_GPU_MEMORY, blamed=other)
    assert list(broker.state.profiles) == []


@pytest.mark.parametrize(
    "wrong", [{"memory": -1}, {"ran_s": -1.0}, {"to_peak_s": float("nan")}]
)
def test_a_note_that_cannot_be_is_refused(
    broker: Brokerage, wrong: dict[str, Any]
) -> None:
    said = {"attempt": broker.name(begun(broker)), "memory": 1, **wrong}
    with pytest.raises(ProtocolError):
        broker.hear(ProfileNoted(**said))


def test_a_worker_tells_only_of_its_own_attempts(broker: Brokerage) -> None:
    job = begun(broker)
    broker.join("other")
    broker.hear(ProfileNoted(broker.name(job), GIB), "other")
    assert list(broker.state.profiles) == []


def auto(broker: Brokerage, count: int) -> list[int]:
    asked: dict[str, Any] = {"auto_vram": True, "request": (), "gpu_model": "H200"}
    return [broker.enqueue("python", "train.py", **asked) for _ in range(count)]


def test_one_is_measured_alone_and_then_all_are_packed(broker: Brokerage) -> None:
    first, *others = auto(broker, 4)
    assert broker.running() == [first]
    assert broker.state.attempts[first].allocation["gpu"] == {"0": WHOLE}
    other = broker.enqueue("python", "a.py", auto_vram=True, request=())
    assert broker.running() == [first, other]
    broker.start(first)
    broker.exit(first, 0, peak=peak(3), ran_s=60.0)
    assert broker.running() == [*others, other]
    for job in others:
        assert broker.state.attempts[job].allocation == {"vram": {"0": 32_500}}


def test_a_restart_keeps_what_was_learned_and_who_is_measured(
    broker: Brokerage,
) -> None:
    first, second = auto(broker, 2)
    broker.start(first)
    broker.restart()
    hello = Hello(WORKER, "desk", BOOT, broker.state.workers[WORKER].found, [], [])
    hello.running.append(broker.report(first))
    broker.hear(hello)
    assert broker.running() == [first]
    broker.exit(first, 0, peak=peak(3), ran_s=60.0)
    assert broker.running() == [second]


def test_a_type_that_fails_twice_is_not_waited_for(broker: Brokerage) -> None:
    run(broker, None, 1)
    run(broker, None, 1)
    jobs = auto(broker, 2)
    first = broker.running()
    assert first == jobs[:1]
    asked: dict[str, Any] = {"auto_vram": True, "request": ()}
    elsewhere = broker.enqueue("python", "train.py", gpu_model="A100", **asked)
    assert elsewhere in broker.running()


def test_nobody_waits_for_one_that_cannot_be_measured(broker: Brokerage) -> None:
    first, second = auto(broker, 2)
    broker.start(first)
    broker.hear(ProfileNoted(broker.name(first), 0, 600.0, late=True))
    assert broker.state.profiles.amounts("train.py")[H200] > 140 * WHOLE
    assert "profile" not in (
        why_waiting(broker.state.jobs[second], broker.state, 0, {}) or ""
    )


def shrinking(broker: Brokerage) -> Brokerage:
    """Have a worker that can take back a part of what an attempt holds."""
    found = broker.state.workers[WORKER].found
    broker.hear(Hello(WORKER, "desk", BOOT, found, [], [], shrinks=True))
    return broker


def test_an_attempt_that_was_measured_alone_makes_room_for_others(
    broker: Brokerage,
) -> None:
    first, second = auto(shrinking(broker), 2)
    broker.start(first)
    note(broker, first, 3)
    kept = {"vram": {"0": 32_500}}
    assert broker.state.attempts[first].allocation == kept
    assert broker.state.attempts[second].allocation == kept
    messages = [message for _, message in broker.sent]
    assert [type(one) for one in messages] == [Shrink, Start]
    assert messages[0] == Shrink(broker.name(first), kept)


def test_a_worker_that_forgot_that_is_told_again(broker: Brokerage) -> None:
    (first,) = auto(shrinking(broker), 1)
    broker.start(first)
    whole = broker.report(first)
    note(broker, first, 3)
    found = broker.state.workers[WORKER].found
    broker.hear(Hello(WORKER, "desk", BOOT, found, [whole], [], shrinks=True))
    kept = {"vram": {"0": 32_500}}
    assert broker.said(Shrink) == [Shrink(broker.name(first), kept)]


def test_a_worker_that_cannot_shrink_keeps_its_attempt_alone(broker: Brokerage) -> None:
    first, second = auto(broker, 2)
    broker.start(first)
    note(broker, first, 3)
    assert broker.state.attempts[first].allocation["gpu"] == {"0": WHOLE}
    assert broker.running() == [first]
    broker.exit(first, 0, peak=peak(3))
    assert broker.running() == [second]
