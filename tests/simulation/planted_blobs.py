"""Bugs about blobs that the simulation must find, one at a time."""

from collections.abc import Iterable

import pytest

from grass.broker.core.jobs.blob_claims import BlobClaims
from grass.link.messages import Start
from grass.worker.core import blob_fetches
from grass.worker.core.blob_fetches import BlobFetches
from grass.worker.core.worker_core import WorkerCore
from tests.simulation.memory_blobs import MemoryDraft
from tests.simulation.planting import bug


@bug("a fetched blob is not verified", likely=58)
def _not_verified(patch: pytest.MonkeyPatch) -> None:
    def finish(self: MemoryDraft) -> bool:
        self._kept[self._name] = bytes(self._data)
        return True

    patch.setattr(MemoryDraft, "finish", finish)


@bug("a blob is removed while a call names it", likely=200)
def _held_removed(patch: pytest.MonkeyPatch) -> None:
    def removable(self: BlobClaims, unnamed: Iterable[str]) -> list[str]:
        left = list(unnamed)
        self._there.difference_update(left)
        return left

    patch.setattr(BlobClaims, "removable", removable)


@bug("a blob that is about to be removed counts as there", likely=13)
def _removed_there(patch: pytest.MonkeyPatch) -> None:
    def removable(self: BlobClaims, unnamed: Iterable[str]) -> list[str]:
        return [name for name in unnamed if not self._held[name]]

    patch.setattr(BlobClaims, "removable", removable)


@bug("a task starts before its blob is there", likely=9)
def _not_waited_for(patch: pytest.MonkeyPatch) -> None:
    real = WorkerCore._start

    def start(self: WorkerCore, message: Start) -> None:
        self.fetching.clear()
        real(self, message)

    patch.setattr(WorkerCore, "_start", start)


@bug("a piece of a blob that is cut off is taken", likely=34)
def _cut_taken(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(blob_fetches._Fetch, "problem", lambda self, data: "")


@bug("a blob is not asked for again on a new link", likely=10)
def _not_asked_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BlobFetches, "connected", lambda self: None)
