"""Results that are older than a setting says are removed, and nothing else is."""

import asyncio
import os
import time
from pathlib import Path

from grass.worker.shell.old_results import remove_old_results


def test_only_results_that_are_old_enough_go(tmp_path: Path) -> None:
    folder = tmp_path / "default" / "train" / "1"
    folder.mkdir(parents=True)
    hour_ago = time.time() - 3600
    for name in ("1.log", "1.result", "2.result"):
        (folder / name).write_text("x")
    for name in ("1.log", "1.result"):
        os.utime(folder / name, (hour_ago, hour_ago))

    async def story() -> None:
        removing = asyncio.ensure_future(remove_old_results(str(tmp_path), 1800.0))
        while (folder / "1.result").exists():  # noqa: ASYNC110 -- of another thread
            await asyncio.sleep(0.01)
        removing.cancel()

    asyncio.run(asyncio.wait_for(story(), 30))
    assert sorted(path.name for path in folder.iterdir()) == ["1.log", "2.result"]
