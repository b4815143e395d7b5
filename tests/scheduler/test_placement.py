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
    lab.start("{gpu:1,vram:2}")
    assert lab.start("{vram:6}") == {"vram": {"0": whole(6)}}


def test_a_share_of_a_gpu_brings_that_share_of_its_memory(lab: Lab) -> None:
    lab.worker("w", "{gpu:1,vram:{'0':80}}")
    half = {"gpu": {"0": whole(0.5)}, "vram": {"0": whole(40)}}
    assert lab.start("{gpu:0.5}") == half
    assert lab.start("{gpu:0.5}") == half


def test_a_whole_gpu_is_whole(lab: Lab) -> None:
    lab.worker("w", "{gpu:2,vram:{'0':80,'1':80}}")
    lab.start("{gpu:1}")
    assert lab.start("{vram:8}") == {"vram": {"1": whole(8)}}
    job = lab.enqueue("{gpu:1}")
    assert lab.decide() == {}
    assert str(lab.explain(job)) == (
        "needs gpu 1 whole with its memory; job 2 holds 8G of gpu 1"
    )


def test_gpus_that_are_declared_without_memory_bring_none(lab: Lab) -> None:
    lab.worker("w", "{gpu:{'0':1,'x':1},vram:{'0':80}}")
    lab.scheduler.drain("w", "gpu", "0", True)
    assert lab.start("{gpu:1}") == {"gpu": {"x": whole(1)}}


def test_whole_gpus_and_a_share_bring_what_each_has(lab: Lab) -> None:
    lab.worker("w", "{gpu:3,vram:{'0':40,'1':40,'2':80}}")
    taken = lab.start("{gpu:2.5}")
    assert taken["gpu"] == {"0": whole(1), "1": whole(1), "2": whole(0.5)}
    assert taken["vram"] == {"0": whole(40), "1": whole(40), "2": whole(40)}


def test_a_little_withheld_memory_blocks_no_share(lab: Lab) -> None:
    lab.worker("w", "{gpu:1,vram:{'0':80}}")
    lab.scheduler.withhold("w", {"vram": {"0": whole(0.5)}})
    assert lab.start("{gpu:0.5}")["vram"] == {"0": whole(39.75)}
    assert lab.start("{gpu:0.5}")["vram"] == {"0": whole(39.75)}


def test_of_gpus_that_are_alike_one_with_least_withheld_is_given(lab: Lab) -> None:
    lab.worker("w", "{gpu:3,vram:{'0':80,'1':80,'2':80}}")
    lab.scheduler.withhold("w", {"vram": {"0": whole(6), "1": whole(2)}})
    assert lab.start("{gpu:1}")["gpu"] == {"2": whole(1)}
    assert lab.start("{gpu:0.5}")["gpu"] == {"1": whole(0.5)}
    # The fullest that fits, as ever.
    assert lab.start("{gpu:0.5}")["gpu"] == {"1": whole(0.5)}


def test_a_gpu_with_memory_is_one_with_least_withheld(lab: Lab) -> None:
    lab.worker("w", "{gpu:2,vram:{'0':80,'1':80}}")
    lab.scheduler.withhold("w", {"vram": {"0": whole(6)}})
    assert lab.start("{gpu:1,vram:10}")["gpu"] == {"1": whole(1)}


def test_a_tenth_of_the_memory_withheld_blocks_a_share_until_it_is_offered(
    lab: Lab,
) -> None:
    lab.worker("w", "{gpu:1,vram:{'0':80}}")
    lab.scheduler.withhold("w", {"vram": {"0": whole(12)}})
    job = lab.enqueue("{gpu:1}")
    assert lab.decide() == {}
    assert str(lab.explain(job)) == (
        "needs gpu 1 whole with its memory; 12G of gpu 0 is withheld"
    )
    lab.scheduler.withhold("w", {"vram": {"0": whole(8)}})
    assert lab.decide()[job][1]["vram"] == {"0": whole(72)}


def test_what_is_withheld_is_not_given_away_and_held_units_stay_held(lab: Lab) -> None:
    lab.worker("w", "{ram:[32]}")
    lab.start("{ram:24}")
    lab.scheduler.withhold("w", {"ram": {"0": whole(16)}})
    job = lab.enqueue("{ram:4}")
    assert lab.decide() == {}
    lab.scheduler.withhold("w", {"ram": {"0": whole(2)}})
    assert job in lab.decide()


def test_what_could_never_be_met_ignores_what_is_withheld(lab: Lab) -> None:
    lab.worker("w", "{vram:{'0':80}}")
    lab.scheduler.withhold("w", {"vram": {"0": whole(60)}})
    assert lab.scheduler.never_fits("default", (("vram", whole(80)),)) is None


def test_several_units_count_as_whole_without_what_is_withheld(lab: Lab) -> None:
    lab.worker("w", "{disk:{'0':80,'1':80}}")
    lab.scheduler.withhold("w", {"disk": {"0": whole(1), "1": whole(1)}})
    assert lab.start("{disk:100}") == {"disk": {"0": whole(79), "1": whole(21)}}


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


def test_how_much_may_be_withheld_of_a_share_can_be_set(lab: Lab) -> None:
    lab.scheduler.set_most_strangers(whole(1) // 4)
    lab.worker("w", "{gpu:1,vram:{'0':80}}")
    lab.scheduler.withhold("w", {"vram": {"0": whole(12)}})
    job = lab.enqueue("{gpu:1}")
    assert list(lab.decide()) == [job]
    lab.scheduler.set_most_strangers(0)
    lab.scheduler.release(job)
    later = lab.enqueue("{gpu:1}")
    assert lab.decide() == {}
    lab.scheduler.withhold("w", {})
    assert list(lab.decide()) == [later]
