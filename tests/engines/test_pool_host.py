"""The files that pilots leave in the folder that they share with their broker."""

from pathlib import Path
from typing import Any, cast

from grass.daemon.pools.pool_host import MOST_KEPT, PilotFiles
from grass.model.pools import Pool
from tests.engines.asking import do


def pool(name: str, folder: Path) -> Pool:
    return Pool(
        name=name,
        engine="slurm",
        max_workers=1,
        idle_s=1,
        time_limit_s=60,
        folder=str(folder),
        created_at=0,
        created_by="uid:0",
    )


def test_pools_whose_names_begin_alike_keep_their_logs_apart(folder: Path) -> None:
    files = PilotFiles(cast("Any", None), None, cast("Any", None))
    marks = [f"{number:024x}" for number in range(MOST_KEPT + 1)]
    for mark in marks:
        (folder / f"a.b.{mark}.out").write_text("of a.b")
    (folder / f"a.{marks[0]}.out").write_text("of a")
    assert do(files.logs(pool("a", folder))) == {marks[0]: "of a"}
    do(files.forget(pool("a", folder), marks[0]))
    assert len(list(folder.glob("a.b.*.out"))) == len(marks)
    do(files.forget(pool("a.b", folder), marks[0]))
    assert len(list(folder.glob("a.b.*.out"))) == MOST_KEPT
