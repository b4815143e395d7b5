"""Blobs: kept whole under their hash, and as long as somebody names them."""

import errno
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.store.conftest import Reopen
from tests.support.building import a_job, a_spec

from grass.errors import StorageError, UsageError
from grass.model.jobs.job import Job, TaskJob
from grass.model.jobs.task_call import TaskCall
from grass.store.blob_folder import BlobFolder
from grass.store.blobs import Blobs
from grass.store.changes import Changes
from grass.store.interface import Store

DATA = bytes(range(256)) * 1000


def name_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


NAME = name_of(DATA)


def put(blobs: Blobs, data: bytes) -> bool:
    draft = blobs.begin(name_of(data))
    for at in range(0, len(data), 1000):
        draft.write(data[at : at + 1000])
    return draft.finish()


def test_a_blob_is_read_in_pieces_and_after_a_restart(reopen: Reopen) -> None:
    store = reopen()
    assert store.blobs.size(NAME) is None
    assert store.blobs.read(NAME, 0, 1) is None
    assert store.blobs.missing([NAME, name_of(b"other")]) == [NAME, name_of(b"other")]
    assert put(store.blobs, DATA)
    assert store.blobs.missing([NAME, name_of(b"other")]) == [name_of(b"other")]
    assert not put(store.blobs, DATA)
    blobs = reopen().blobs
    assert blobs.size(NAME) == len(DATA)
    assert blobs.read(NAME, 0, 10**9) == DATA
    assert blobs.read(NAME, 1000, 10) == DATA[1000:1010]
    assert blobs.read(NAME, len(DATA), 10) == b""
    assert list(blobs.names()) == [NAME]
    blobs.remove([NAME, name_of(b"other")])
    assert blobs.size(NAME) is None


def test_bytes_with_another_hash_are_not_kept(store: Store) -> None:
    draft = store.blobs.begin(NAME)
    draft.write(b"something else")
    with pytest.raises(UsageError, match="SHA-256"):
        draft.finish()
    draft.discard()
    assert store.blobs.size(NAME) is None
    assert not list(store.blobs.names())


def test_drafts_of_a_process_that_died_are_removed(tmp_path: Path) -> None:
    BlobFolder(tmp_path).begin(NAME).write(b"half of it")
    assert len(list((tmp_path / "drafts").iterdir())) == 1
    assert not list(BlobFolder(tmp_path).names())
    assert not list((tmp_path / "drafts").iterdir())


def test_a_folder_that_another_one_made_is_synced_as_well(tmp_path: Path) -> None:
    synced: list[str] = []

    def sync(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))

    top = tmp_path / "blobs"
    # Its maker has not synced it yet, or died before.
    (top / NAME[:2]).mkdir(parents=True)
    folder = BlobFolder(top, sync)
    assert put(folder, DATA)
    assert synced[1:] == [str(tmp_path), str(top), str(top / NAME[:2])]
    del synced[:]
    assert not put(folder, DATA)
    assert synced[1:] == [str(top / NAME[:2])]


class SyncedNames:
    """Which names of a folder are on the disk, as `fsync` puts them there."""

    def __init__(self) -> None:
        self.on_disk: set[str] = set()
        self.before: Callable[[str], None] = lambda _: None

    def __call__(self, descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        self.before(path)
        if os.path.isdir(path):
            self.on_disk.update(f"{path}/{name}" for name in os.listdir(path))


def test_a_blob_is_there_once_a_power_cut_would_leave_it(tmp_path: Path) -> None:
    synced, found = SyncedNames(), list[str]()
    top = tmp_path / "blobs"
    folder = BlobFolder(top, synced)
    path = folder.path(NAME)

    def ask(place: str) -> None:
        """Ask between the rename and the sync, as another thread may."""
        if place == os.path.dirname(path) and not found:
            found.append("asked")
            if not folder.missing([NAME]):
                assert path in synced.on_disk

    synced.before = ask
    assert folder.missing([NAME]) == [NAME]
    assert put(folder, DATA)
    assert found
    assert folder.missing([NAME]) == []
    assert {str(top), str(top / NAME[:2]), path} <= synced.on_disk


def test_a_name_that_a_dead_process_left_is_synced_before_it_counts(
    tmp_path: Path,
) -> None:
    top = tmp_path / "blobs"

    def broken(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink() == top / NAME[:2]:
            raise OSError(errno.EIO, "broken")

    first = BlobFolder(top, broken)
    with pytest.raises(StorageError, match="broken"):
        put(first, DATA)
    with pytest.raises(StorageError, match="broken"):
        first.missing([NAME])
    synced = SyncedNames()
    second = BlobFolder(top, synced)
    assert second.missing([NAME]) == []
    assert {str(top), str(top / NAME[:2]), second.path(NAME)} <= synced.on_disk


def test_two_that_write_to_one_folder_have_drafts_of_their_own(tmp_path: Path) -> None:
    first = BlobFolder(tmp_path)
    one = first.begin(NAME)
    one.write(DATA[:1000])
    second = BlobFolder(tmp_path, is_shared=True)
    other = second.begin(name_of(b"other"))
    other.write(b"other")
    one.write(DATA[1000:])
    assert one.finish()
    assert other.finish()
    assert second.read(NAME, 0, 10**9) == DATA
    assert first.read(name_of(b"other"), 0, 10) == b"other"


def task_job(number: int, blob: str = "", data: bytes = b"") -> Job:
    plain = a_job(number)
    return TaskJob(
        number, plain.common, plain.state, arguments=data, arguments_blob=blob
    )


def test_a_blob_is_named_until_its_last_job_is_gone(reopen: Reopen) -> None:
    store = reopen()
    function, arguments, nobody = map(name_of, (b"f", b"a", b"n"))
    names = [function, arguments, nobody]
    assert store.unnamed_blobs(names) == names
    called = replace(a_spec(), task=TaskCall(function, "3.11"))
    jobs = {7: task_job(7, arguments), 8: task_job(8, arguments)}
    store.commit(Changes(specs={1: called}, jobs=jobs))
    assert store.unnamed_blobs(names) == [nobody]
    store.commit(Changes(removed_jobs=[7], unused_specs=[1]))
    assert reopen().unnamed_blobs(names) == [nobody]
    store = reopen()
    store.commit(Changes(removed_jobs=[8], unused_specs=[1]))
    assert store.unnamed_blobs(names) == names


def test_jobs_that_never_arrived_name_nothing(reopen: Reopen) -> None:
    store = reopen()
    arguments = name_of(b"a")
    jobs = {1: task_job(1, arguments)}
    changes = Changes(specs={1: a_spec()}, jobs=jobs, arrivals=[(1, 2)])
    changes.meta["last_job"] = "2"
    store.commit(changes)
    assert store.unnamed_blobs([arguments]) == []
    store = reopen()
    store.load(0)
    assert store.unnamed_blobs([arguments]) == [arguments]


def test_arguments_are_read_back_as_they_were(reopen: Reopen) -> None:
    data = b"\x80\x05\x00\xff"
    jobs = {1: task_job(1, data=data), 2: task_job(2, NAME), 3: a_job(3)}
    reopen().commit(Changes(specs={1: a_spec()}, jobs=jobs))
    found = reopen().load(0).jobs
    assert [(one.arguments, one.arguments_blob) for one in found] == [
        (data, ""),
        (b"", NAME),
        (b"", ""),
    ]
    assert [type(one) for one in found] == [TaskJob, TaskJob, Job]
