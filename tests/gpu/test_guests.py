"""Guests from Python on a real GPU."""

import json
import sys
from importlib.util import find_spec

import pytest

from tests.gpu.gpu_home import HOLD, GpuHome

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.daemon,
    pytest.mark.timeout(180),
    pytest.mark.skipif(
        find_spec("grass.profiles") is None, reason="this version has no guests"
    ),
]

GUEST = f"""
import json, os, subprocess, sys, time
sys.path.insert(0, {str(HOLD.rpartition("/")[0])!r})
import grass
import hold

with grass.allocate(gpu=0.5):
    kept = hold.hold(512 << 20)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        ran = subprocess.run(["grass", "gpu", "--json"], capture_output=True, text=True)
        told = json.loads(ran.stdout)
        gpus = [gpu for worker in told["workers"] for gpu in worker["gpus"]]
        if any(gpu["pids_hidden"] or gpu["memory"]["jobs"] for gpu in gpus):
            break
    print(json.dumps([os.environ["CUDA_VISIBLE_DEVICES"], told]))
"""
DECORATED = """
import grass as grn

@grn.job()
def main():
    import os
    print("on", os.environ["CUDA_VISIBLE_DEVICES"])

main()
"""


def ran(real: GpuHome, name: str, script: str) -> str:
    (real.desk / name).write_text(script)
    done = real.shell(f"{sys.executable} {name}")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_guest_holds_a_share_and_is_told_apart_from_strangers(real: GpuHome) -> None:
    visible, document = json.loads(ran(real, "guest.py", GUEST))
    (worker,) = document["workers"]
    (held,) = [gpu for gpu in worker["gpus"] if gpu["jobs"]]
    assert held["unit"] == visible
    if not held["pids_hidden"]:
        assert held["memory"]["jobs"] >= 512 << 20
    assert [gpu for gpu in real.gpus() if gpu["jobs"]] == []


def test_a_decorated_function_runs_on_its_device(real: GpuHome) -> None:
    assert ran(real, "decorated.py", DECORATED).startswith("on ")
