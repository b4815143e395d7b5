"""The program of a pilot alone: no engine and no broker is there."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from grass.daemon.pools import pilot
from tests.support.patience import PATIENCE_S

UNREACHABLE = {
    "pin": "",
    "token": "pilot-1.secret",
    "role": "worker",
    "name": "pilot-1",
    "addresses": ["127.0.0.1:9"],
    "cluster": "c",
    "joined_at": "2026-01-01T00:00:00Z",
}


def run_pilot(
    folder: Path, variables: dict[str, str], **changes: object
) -> "subprocess.CompletedProcess[str]":
    """Run a pilot to its end; its worker reaches no broker, and stays for long."""
    told: dict[str, Any] = {
        "known": [UNREACHABLE],
        "words": ["--no-broker", "--on-disconnect=stop", "--lease=60s"],
        "cpus": 1,
        "memory_mib": None,
        "gpus": 0,
        "notes": True,
        "time_limit_s": 600,
        "away_limit_s": 600,
        "output": str(folder / "output"),
        **changes,
    }
    path = folder / "m1"
    path.write_text(json.dumps(told))
    kept = {name: value for name, value in os.environ.items() if "CUDA" not in name}
    return subprocess.run(
        [sys.executable, "-I", "-S", pilot.__file__, str(path)],
        env={**kept, "TMPDIR": str(folder), **variables},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_a_pilot_ends_with_its_time_where_the_engine_keeps_none(folder: Path) -> None:
    run_pilot(folder, {}, time_limit_s=3)
    assert (folder / "m1.ended").exists()
    assert list(folder.glob("grass-pilot-*")) == []


def test_a_pilot_that_is_told_of_no_gpu_offers_none(folder: Path) -> None:
    ran = run_pilot(folder, {}, gpus=1)
    assert ran.returncode == 1
    assert len(ran.stderr.splitlines()) == 1
    assert "CUDA_VISIBLE_DEVICES is not set here" in ran.stderr
    assert (folder / "m1.ended").exists()


def test_a_pilot_loads_little() -> None:
    source = Path(pilot.__file__).parents[3]
    looked = (
        f"import sys; sys.path.insert(0, {str(source)!r})\n"
        "import grass.daemon.pools.pilot_process\n"
        "print(*sys.modules)"
    )
    words = [sys.executable, "-I", "-S", "-c", looked]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    heavy = {"typing", "subprocess", "threading", "tempfile", "shutil", "pathlib"}
    assert heavy & set(ran.stdout.split()) == set()
