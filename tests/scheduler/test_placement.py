"""Which units a job gets."""

from .lab import Lab, whole


def test_an_amount_that_fits_on_one_unit_goes_on_one_unit(lab: Lab) -> None:
    lab.worker("w", "{gpu:2}")
    assert lab.start("{gpu:0.6}") == {"gpu": {"0": whole(0.6)}}
    assert lab.start("{gpu:0.6}") == {"gpu": {"1": whole(0.6)}}
    lab.enqueue("{gpu:0.6}")
    assert lab.decide() == {}


def test_the_unit_with_the_least_free_that_still_fits_is_taken(lab: Lab) -> None:
    lab.worker("w", "{gpu:3}")
    lab.scheduler.occupy("lease", "w", {"gpu": {"1": whole(0.5)}})
    assert lab.start("{gpu:0.25}") == {"gpu": {"1": whole(0.25)}}
    assert lab.start("{gpu:0.5}") == {"gpu": {"0": whole(0.5)}}


def test_units_are_taken_in_natural_order(lab: Lab) -> None:
    lab.worker("w", "{gpu:{'10':1,'2':1,'a':1}}")
    names = [next(iter(lab.start("{gpu:1}")["gpu"])) for _ in range(3)]
    assert names == ["2", "10", "a"]


def test_two_and_a_half_takes_two_whole_units_and_half_of_a_third(lab: Lab) -> None:
    lab.worker("w", "{gpu:4}")
    lab.scheduler.occupy("lease", "w", {"gpu": {"0": whole(0.5)}})
    taken = lab.start("{gpu:2.5}")["gpu"]
    assert taken == {"1": whole(1), "2": whole(1), "0": whole(0.5)}


def test_a_larger_amount_takes_the_largest_units_first(lab: Lab) -> None:
    lab.worker("w", "{disk:[1,4,2]}")
    assert lab.start("{disk:5}") == {"disk": {"1": whole(4), "0": whole(1)}}


def test_a_larger_amount_takes_no_second_partial_unit(lab: Lab) -> None:
    lab.worker("w", "{gpu:3}")
    lab.scheduler.occupy("a", "w", {"gpu": {"0": whole(0.5)}})
    lab.scheduler.occupy("b", "w", {"gpu": {"1": whole(0.5)}})
    job = lab.enqueue("{gpu:2}")
    assert lab.decide() == {}
    assert lab.release("b") == {job: ("w", {"gpu": {"1": whole(1), "2": whole(1)}})}


def test_ten_tenths_are_exactly_one(lab: Lab) -> None:
    lab.worker("w", "{gpu:1}")
    for _ in range(11):
        lab.enqueue("{gpu:0.1}")
    assert list(lab.decide()) == list(range(1, 11))


def test_one_worker_meets_the_whole_request(lab: Lab) -> None:
    lab.worker("a", "{cpu:8}")
    lab.worker("b", "{gpu:1}")
    lab.enqueue("{cpu:1,gpu:1}")
    assert lab.decide() == {}
    lab.worker("c", "{cpu:1,gpu:1}")
    assert lab.decide()[1][0] == "c"


def test_an_empty_request_starts_on_any_worker(lab: Lab) -> None:
    lab.worker("w", "{cpu:1}")
    assert lab.start("{cpu:0}") == {}


def test_the_fullest_worker_that_fits_is_preferred(lab: Lab) -> None:
    lab.worker("a", "{cpu:4}")
    lab.worker("b", "{cpu:4}")
    lab.scheduler.occupy("lease", "b", {"cpu": {"0": whole(1)}})
    job = lab.enqueue("{cpu:1}")
    assert lab.decide()[job][0] == "b"


def test_among_equal_workers_the_name_decides(lab: Lab) -> None:
    lab.worker("b", "{cpu:4}")
    lab.worker("a", "{cpu:4}")
    job = lab.enqueue("{cpu:1}")
    assert lab.decide()[job][0] == "a"


def test_vram_comes_from_the_same_units_as_the_gpu(lab: Lab) -> None:
    lab.worker("w", "{gpu:2,vram:{'0':8,'1':24}}")
    taken = lab.start("{gpu:0.5,vram:16}")
    assert taken == {"gpu": {"1": whole(0.5)}, "vram": {"1": whole(16)}}


def test_vram_of_several_gpus_is_split_evenly_with_the_rest_on_the_first(
    lab: Lab,
) -> None:
    lab.worker("w", "{gpu:3,vram:{'0':24,'1':24,'2':24}}")
    taken = lab.start("{gpu:3,vram:10}")
    assert taken["vram"] == {"0": 33334, "1": 33333, "2": 33333}


def test_a_tied_request_starts_when_one_unit_has_both(lab: Lab) -> None:
    lab.worker("w", "{gpu:2,vram:{'0':8,'1':8}}")
    lab.scheduler.occupy("a", "w", {"gpu": {"0": whole(1)}})
    lab.scheduler.occupy("b", "w", {"vram": {"1": whole(8)}})
    job = lab.enqueue("{gpu:1,vram:8}")
    assert lab.decide() == {}
    assert list(lab.release("b")) == [job]


def test_vram_split_over_several_gpus_starts_when_each_share_is_free(lab: Lab) -> None:
    lab.worker("w", "{gpu:3,vram:{'0':6,'1':6,'2':6}}")
    for lease, amount in (("a", 3), ("b", 2)):
        units = {unit: whole(amount) for unit in ("0", "1", "2")}
        lab.scheduler.occupy(lease, "w", {"vram": units})
    job = lab.enqueue("{gpu:3,vram:6}")
    assert lab.decide() == {}
    assert list(lab.release("b")) == [job]


def test_vram_alone_is_an_ordinary_kind(lab: Lab) -> None:
    lab.worker("w", "{gpu:1,vram:{'0':8}}")
    lab.start("{gpu:1}")
    assert lab.start("{vram:8}") == {"vram": {"0": whole(8)}}


def test_only_the_named_worker_runs_the_job(lab: Lab) -> None:
    lab.worker("a", "{cpu:1}")
    job = lab.enqueue("{cpu:1}", worker="b")
    assert lab.decide() == {}
    lab.worker("b", "{cpu:1}")
    assert lab.decide()[job][0] == "b"


def test_only_workers_with_all_labels_run_the_job(lab: Lab) -> None:
    lab.worker("a", "{cpu:1}", "fast")
    lab.worker("b", "{cpu:1}", "fast", "near")
    job = lab.enqueue("{cpu:1}", labels=("near", "fast"))
    assert lab.decide()[job][0] == "b"
