"""Profiles in a store: what every store keeps of them."""

from tests.store.conftest import Reopen

from grass.model.usage.profiles import MeasuredRun, Profile
from grass.store.changes import Changes
from grass.store.interface import Store

SAMPLES = [
    MeasuredRun(7, 5, 2**31, 60.5, 2.25, "running", (2**20, 2**31)),
    MeasuredRun(9, 6, 2**33, end="out-of-memory"),
]
WHOLE = Profile("a/fit.py::fit", "A100", SAMPLES, 3, 1)


def save(store: Store, *profiles: Profile) -> None:
    store.commit(Changes(profiles={(one.job_type, one.model): one for one in profiles}))


def test_profiles_read_back_as_they_were_committed(reopen: Reopen) -> None:
    bare = Profile("a/fit.py::fit", "")
    other = Profile("train.py", "A100")
    save(reopen(), other, WHOLE, bare)
    assert reopen().load(0).profiles == [bare, WHOLE, other]


def test_a_profile_is_replaced_by_its_type_and_model(store: Store) -> None:
    save(store, WHOLE)
    later = Profile(WHOLE.job_type, WHOLE.model, SAMPLES[1:], 4)
    save(store, later)
    assert store.load(0).profiles == [later]


def test_a_profile_is_forgotten_and_may_come_again(store: Store) -> None:
    save(store, WHOLE, Profile("train.py", "A100"))
    key = (WHOLE.job_type, WHOLE.model)
    store.commit(Changes(removed_profiles=[key]))
    assert [one.job_type for one in store.load(0).profiles] == ["train.py"]
    store.commit(Changes(removed_profiles=[key], profiles={key: WHOLE}))
    assert store.load(0).profiles[0] == WHOLE
