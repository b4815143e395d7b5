"""A backup of a store in SQLite: one file with the database and the blobs it names.

The copy is of one commit, and made while a broker writes. Blobs are in a table of their
own, which only backups have, and so are small files that go with the database.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

from grass.errors import Refused, StorageError
from grass.model.restored import RESTORED_LAST_JOB
from grass.store.blob_folder import BlobFolder
from grass.store.blobs import PIECE
from grass.store.sqlite.database_file import SCHEMA_VERSION, damaged, open_reader

_TABLE = """CREATE TABLE backup_blobs (
    name TEXT NOT NULL, begins_at INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (name, begins_at)
) WITHOUT ROWID"""
_FILES = "CREATE TABLE backup_files (name TEXT PRIMARY KEY, data BLOB NOT NULL)"
_MARK = (
    "INSERT OR REPLACE INTO meta (key, value)"
    " SELECT ?, value FROM meta WHERE key = 'last_job'"
)
_OWN_TABLES = ("backup_blobs", "backup_files")
_NAMED = "SELECT blob FROM spec_blobs UNION SELECT blob FROM job_blobs"


def back_up(
    path: Path, target: Path, files: Mapping[str, bytes] | None = None
) -> tuple[int, int]:
    """Copy a database and its blobs into one file; return its jobs and its blobs.

    An older backup is replaced, if the copy is whole. Anything else is not.
    """
    if not _may_be_replaced(target):
        raise Refused(f"{target} is there, and is no backup", "choose another name")
    draft = target.with_name(target.name + ".draft")
    _remove(draft)
    try:
        with closing(sqlite3.connect(draft)) as copy:
            # Whatever umask the caller has: there are environments in it.
            draft.chmod(0o600)
            with closing(open_reader(path)) as source:
                source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            copy.execute(_TABLE)
            copy.execute(_FILES)
            insert = "INSERT INTO backup_files VALUES (?, ?)"
            copy.executemany(insert, (files or {}).items())
            blobs = _add_blobs(copy, BlobFolder(path.parent / "blobs", is_shared=True))
            (jobs,) = copy.execute("SELECT COUNT(*) FROM jobs").fetchone()
            copy.commit()
            (problem,) = copy.execute("PRAGMA integrity_check(1)").fetchone()
        if problem != "ok":
            raise damaged(path, f"{problem}; {target} is left as it was")
        draft.rename(target)
    except StorageError:
        _remove(draft)
        raise
    except (sqlite3.Error, OSError) as error:
        _remove(draft)
        raise StorageError(f"{target} cannot be written: {error}") from error
    return int(jobs), blobs


def _may_be_replaced(target: Path) -> bool:
    if not target.exists():
        return True
    if not target.is_file():
        return False
    # A file made for the backup, as by mktemp, is empty.
    return target.stat().st_size == 0 or _is_backup(target)


def _is_backup(path: Path) -> bool:
    try:
        with closing(_reader(path)) as db:
            return _has_tables(db)
    except sqlite3.Error:
        return False


def _add_blobs(copy: sqlite3.Connection, blobs: BlobFolder) -> int:
    added = 0
    for (name,) in copy.execute(_NAMED).fetchall():
        # One that is gone was named by a job that was forgotten meanwhile.
        if blobs.size(name) is not None:
            insert = "INSERT INTO backup_blobs VALUES (?, ?, ?)"
            copy.executemany(insert, _pieces(blobs, name))
            added += 1
    return added


def _pieces(blobs: BlobFolder, name: str) -> Iterator[tuple[str, int, bytes]]:
    offset = 0
    while piece := blobs.read(name, offset, PIECE):
        yield name, offset, piece
        offset += len(piece)


def restore(
    backup: Path, path: Path, prepare: Callable[[Path], None] = lambda _: None
) -> int:
    """Make the database of a backup; return its jobs.

    A database that is there already is kept under another name. `prepare` gets the
    complete database before that is put in place.
    """
    draft = path.with_name(path.name + ".restoring")
    _remove(draft)
    try:
        with closing(_opened(backup)) as source:
            _restore_blobs(source, BlobFolder(path.parent / "blobs", is_shared=True))
            with closing(sqlite3.connect(draft)) as copy:
                draft.chmod(0o600)
                source.backup(copy)
                for table in _OWN_TABLES:
                    copy.execute(f"DROP TABLE IF EXISTS {table}")
                copy.execute(_MARK, (RESTORED_LAST_JOB,))
                copy.commit()
                copy.execute("VACUUM")
                (jobs,) = copy.execute("SELECT COUNT(*) FROM jobs").fetchone()
    except (sqlite3.Error, OSError) as error:
        _remove(draft)
        raise StorageError(f"{backup} cannot be restored: {error}") from error
    prepare(draft)
    kept = name_to_keep(path)
    for end in ("-wal", "-shm", ""):
        old = Path(f"{path}{end}")
        if old.exists():
            old.rename(f"{kept}{end}")
    draft.rename(path)
    return int(jobs)


def files_in(backup: Path) -> dict[str, bytes]:
    """Return the files that a backup has beside the database; an older one has none."""
    try:
        with closing(_opened(backup)) as source:
            names = "SELECT 1 FROM sqlite_master WHERE name = 'backup_files'"
            if source.execute(names).fetchone() is None:
                return {}
            return dict(source.execute("SELECT name, data FROM backup_files"))
    except sqlite3.Error as error:
        raise StorageError(f"{backup} cannot be restored: {error}") from error


def name_to_keep(path: Path) -> Path:
    """Return a name beside a file under which nothing is kept yet."""
    kept, number = Path(f"{path}.before-restore"), 1
    while kept.exists():
        number += 1
        kept = Path(f"{path}.before-restore.{number}")
    return kept


def _opened(backup: Path) -> sqlite3.Connection:
    """Open a backup, once it is known to be whole."""
    db = _reader(backup)
    try:
        _check(db, backup)
    except (sqlite3.Error, Refused):
        db.close()
        raise
    return db


def _reader(backup: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{backup.absolute().as_uri()}?mode=ro", uri=True)


def _has_tables(db: sqlite3.Connection) -> bool:
    names = "SELECT COUNT(*) FROM sqlite_master WHERE name IN ('meta', 'backup_blobs')"
    return bool(db.execute(names).fetchone() == (2,))


def _check(db: sqlite3.Connection, backup: Path) -> None:
    if not _has_tables(db):
        raise Refused(f"{backup} is no backup", "`grass backup FILE` makes one")
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA_VERSION:
        raise Refused(
            f"{backup} was made by a newer grass (schema {version}, this one knows"
            f" {SCHEMA_VERSION})",
            "install that version",
        )
    (found,) = db.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        problem = " ".join(found.split())
        raise Refused(f"{backup} is damaged: {problem}", "restore an older backup")


def _restore_blobs(source: sqlite3.Connection, blobs: BlobFolder) -> None:
    names = source.execute("SELECT DISTINCT name FROM backup_blobs").fetchall()
    pieces = "SELECT data FROM backup_blobs WHERE name = ? ORDER BY begins_at"
    for name in blobs.missing(row[0] for row in names):
        draft = blobs.begin(name)
        try:
            for (data,) in source.execute(pieces, (name,)):
                draft.write(data)
            draft.finish()
        finally:
            draft.discard()


def _remove(draft: Path) -> None:
    for end in ("", "-wal", "-shm", "-journal"):
        Path(f"{draft}{end}").unlink(missing_ok=True)
