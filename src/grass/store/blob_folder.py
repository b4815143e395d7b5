"""Blobs as files of a folder: `ab/ab12...`, each named by the SHA-256 of its bytes.

A file gets its name once all of it is on the disk and its hash is right, so whatever
has a name is whole. That name is on the disk once its folder is synced: until then, or
where a process has died before, `missing` syncs it first. A worker keeps those that it
fetched in the same way. Drafts of a process that died are removed when the folder is
opened. In one process several may open the same folder: the store, and the worker of
the broker's machine.
"""

import contextlib
import errno
import hashlib
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from grass.errors import DiskFull, StorageError, UsageError
from grass.model.jobs.task_call import is_blob_name

_DRAFTS = "drafts"
_OWNER = 0o600
_FULL = (errno.ENOSPC, errno.EDQUOT)


def blob_path(folder: str, name: str) -> str:
    """Return where a folder has a blob."""
    return f"{folder}/{name[:2]}/{name}"


class BlobFolder:
    """The blobs in one folder, which is made when the first one comes."""

    def __init__(
        self,
        folder: str | Path,
        sync: Callable[[int], None] = os.fsync,
        *,
        is_shared: bool = False,
    ) -> None:
        """`sync` puts a file or a folder on the disk.

        A folder that is shared is open already, and its drafts are being written.
        """
        self.folder = str(folder)
        self._folders = DurableFolders(sync)
        self._drafts = os.path.join(self.folder, _DRAFTS)
        for draft in [] if is_shared else _listed(self._drafts):
            os.unlink(draft.path)

    def path(self, name: str) -> str:
        """Return where a blob is, or would be."""
        return blob_path(self.folder, name)

    def begin(self, name: str) -> "FileDraft":
        """Begin to write a blob."""
        try:
            os.makedirs(self._drafts, mode=0o700, exist_ok=True)
            draft = f"{self._drafts}/{os.getpid()}-{secrets.token_hex(8)}"
            return FileDraft(draft, self.path(name), name, self._folders)
        except OSError as error:
            raise _failure(error, self.folder) from error

    def size(self, name: str) -> int | None:
        """Return the size of a blob; None: it is not there."""
        try:
            return os.stat(self.path(name)).st_size
        except FileNotFoundError:
            return None

    def missing(self, names: Iterable[str]) -> list[str]:
        """Return those that are not there; a power cut leaves all others."""
        return [name for name in names if not self._has(name)]

    def _has(self, name: str) -> bool:
        path = self.path(name)
        if not os.path.exists(path):
            return False
        try:
            self._folders.keep(path)
        except OSError as error:
            raise _failure(error, path) from error
        return True

    def read(self, name: str, offset: int, length: int) -> bytes | None:
        """Read a piece of a blob; None: it is not there."""
        try:
            file = os.open(self.path(name), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            return os.pread(file, length, offset)
        finally:
            os.close(file)

    def read_at_once(self, name: str, offset: int, length: int) -> bytes | None:
        """Read a piece if the kernel has it in memory; None: it is to be waited for."""
        return read_from_memory(self.path(name), offset, length)

    def remove(self, names: Iterable[str], _epoch: int = 0) -> None:
        """Remove blobs; those that are not there are passed over."""
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path(name))

    def names(self) -> Iterator[str]:
        """Name all blobs."""
        for folder in _listed(self.folder):
            if folder.name != _DRAFTS:
                for file in _listed(folder.path):
                    if is_blob_name(file.name):
                        yield file.name


class DurableFolders:
    """Folders that are on the disk, each synced once in the folder that has it.

    One that is there already may have been made by another just now, or by a process
    that died before it was synced. So may a file.
    """

    def __init__(self, sync: Callable[[int], None]) -> None:
        self.sync = sync
        self._known: set[str] = set()
        self._looked_at: set[str] = set()
        """Folders that were synced since this process began."""
        self._unsynced: set[str] = set()
        """Files whose names may not be on the disk yet."""

    def make(self, folder: str) -> None:
        """Make a folder, unless it is there, and have it on the disk."""
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            if folder in self._known:
                return
        self._sync_folder(os.path.dirname(folder))
        self._known.add(folder)

    def rename(self, draft: str, path: str) -> None:
        """Give a file its name, durably."""
        folder = os.path.dirname(path)
        self.make(os.path.dirname(folder))
        self.make(folder)
        self._unsynced.add(path)
        os.rename(draft, path)
        self._sync_folder(folder)
        self._looked_at.add(folder)
        self._unsynced.discard(path)

    def keep(self, path: str) -> None:
        """Have the name of a file on the disk that is there."""
        folder = os.path.dirname(path)
        if folder in self._looked_at and path not in self._unsynced:
            return
        self.make(os.path.dirname(folder))
        self.make(folder)
        self._sync_folder(folder)
        self._looked_at.add(folder)

    def _sync_folder(self, folder: str) -> None:
        """Put the names that a folder has on the disk."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.sync(descriptor)
        finally:
            os.close(descriptor)


class FileDraft:
    """A blob that is being written to a file without its final name."""

    def __init__(
        self, draft: str, path: str, name: str, folders: DurableFolders
    ) -> None:
        self._draft, self._path, self._name = draft, path, name
        self._folders = folders
        self._hash = hashlib.sha256()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._file: int | None = os.open(draft, flags, _OWNER)

    def write(self, piece: bytes | bytearray) -> None:
        """Append a piece."""
        assert self._file is not None
        self._hash.update(piece)
        left = memoryview(piece)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as error:
            raise _failure(error, self._path) from error

    def sync(self) -> None:
        """Put what was written on the disk; another thread may write meanwhile."""
        assert self._file is not None
        try:
            self._folders.sync(self._file)
        except OSError as error:
            raise _failure(error, self._path) from error

    def finish(self) -> bool:
        """Keep the blob durably, and return whether it is new."""
        assert self._file is not None
        found = self._hash.hexdigest()
        if found != self._name:
            self.discard()
            raise UsageError(f"the bytes of blob {self._name} have the SHA-256 {found}")
        try:
            return self._keep(self._file)
        except OSError as error:
            raise _failure(error, self._path) from error
        finally:
            self.discard()

    def _keep(self, file: int) -> bool:
        self._folders.sync(file)
        is_new = not os.path.exists(self._path)
        self._folders.rename(self._draft, self._path)
        return is_new

    def discard(self) -> None:
        """Remove what was written; after `finish` nothing happens."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._draft)


def read_from_memory(path: str, offset: int, length: int) -> bytes | None:
    """Read a part of a file of a local disk if that needs no disk; None: it does."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    piece = bytearray(length)
    try:
        size = os.preadv(file, [piece], offset, os.RWF_NOWAIT)
        whole = size == length or offset + size == os.fstat(file).st_size
    except OSError:
        return None
    finally:
        os.close(file)
    return bytes(memoryview(piece)[:size]) if whole else None


def _listed(folder: str) -> "list[os.DirEntry[str]]":
    try:
        return list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _failure(error: OSError, path: str) -> StorageError:
    if error.errno in _FULL:
        return DiskFull(
            f"the disk that holds {path} is full; nothing was changed",
            "free some space, for example with `grass prune`, and try again",
        )
    return StorageError(f"{path} cannot be written: {error.strerror}")
