"""The older systems' own examples, and those of this one, word for word.

Each line is run by bash exactly as it is written. What the examples take for granted
(`train.py`, `main.py`, a printer, `/data`) is put there first.
"""

import fcntl
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.homes import GrassHome, Ran
from tests.support.processes import until_ready

pytestmark = pytest.mark.daemon

TRAIN = """\
import json, os, sys
print(json.dumps({
    "argv": sys.argv[1:], "cwd": os.getcwd(),
    **{k: os.environ.get(k) for k in ("CUDA_VISIBLE_DEVICES", "PYTHONPATH", "TERM")},
}))
"""
LOCAL_SETUP = """\
grass create-queue job1 --capacity "{gpu:4,cpu:16}" main.py arg1
grass enqueue --require "{gpu:1}" --env "CUDA_VISIBLE_DEVICES={gpu}" job1 arg2 arg3
grass enqueue --require "{gpu:0.5}" --env "CUDA_VISIBLE_DEVICES={gpu}" job2 arg2 arg3
grass enqueue  python train.py
"""
EARLY_EXAMPLE = """\
grass create-queue q1 --json "{gpu:4,cpu:16}"
grass enqueue q1 --env "CUDA_VISIBLE_DEVICES={gpu}" --json "{gpu:0.5}" -- python train.py lr=0.01
"""  # noqa: E501
EARLY_USAGE = """\
grass start
grass create-queue q1 --json '{gpu:2,cpu:16}'
grass enqueue q1 --json '{gpu:0.5}' python train.py
grass enqueue q1 --env PYTHONPATH=.. --env TERM=.. --cwd /data --json '{gpu:0.5}' python train.py
grass show
grass show q1
"""  # noqa: E501
EARLY_SCRIPT = """\
import os

for lr in [0.01, 0.1]:
    for batch_size in [8, 16, 32]:
        os.system("grass enqueue q1 --json '{gpu:0.5}' --cwd=/data/ --env='CUDA_VISIBLE_DEVICES={gpu}' -- CUDA_VISIBLE_DEVICES={gpu} python train.py lr=%s batch_size=%s" % (lr,batch_size))
"""  # noqa: E501
LATE_SCRIPT = """\
import os

for lr in [0.01, 0.1]:
    for batch_size in [8, 16, 32]:
        os.system("grass enqueue --require '{gpu:0.5}' --cwd=/data/ --env='CUDA_VISIBLE_DEVICES={gpu}' -- python train.py lr=%s batch_size=%s" % (lr,batch_size))
"""  # noqa: E501
TOUR = """\
grass start ; grass stop ; grass restart       # in the background; stop leaves running jobs alone, `stop --jobs` ends them too
grass create-queue q1 --json "{gpu:4,cpu:16}"
grass create-queue job1 --capacity "{gpu:4,cpu:16}" main.py arg1          # queue with a command prefix
grass create-queue --capacity "{printer:1}" print lpr
grass create-queue q2 --file capacity.json5 --default-require "{gpu:1}" --max-running 2
grass enqueue --require "{gpu:1}" --env "CUDA_VISIBLE_DEVICES={gpu}" job1 arg2 arg3
grass enqueue --require "{printer:1}" print paper.pdf
grass enqueue q1 --env "CUDA_VISIBLE_DEVICES={gpu}" --json "{gpu:0.5}" -- python train.py lr=0.01
grass enqueue q1 --json '{gpu:0.5}' --cwd=/data/ --env='CUDA_VISIBLE_DEVICES={gpu}' -- CUDA_VISIBLE_DEVICES={gpu} python train.py lr=0.1
grass enqueue --require '{gpu:0.5}' --cwd=/data/ --env='CUDA_VISIBLE_DEVICES={gpu}' -- python train.py lr=0.1 batch_size=8
grass enqueue q1 --env PYTHONPATH=.. --env TERM=xterm --cwd /data --json '{gpu:0.5}' python train.py
grass enqueue python train.py                  # no queue, no daemon running: default queue, daemon started by itself
grass enqueue "python a.py && python b.py"     # one word with spaces is a shell line
grass enqueue q1 --require '{gpu:1}' --from jobs.txt      # one shell line per job, or JSON Lines with full specs; `-` is stdin; all or none
grass show ; grass show q1 ; grass show --all ; grass show --json
grass logs 7 ; grass logs -f 7 ; grass wait 7 ; grass wait all ; grass cancel 7 ; grass pause ; grass resume ; grass delete-queue q1
"""  # noqa: E501


@pytest.fixture
def data() -> Iterator[Path]:
    """`/data` with a `train.py`, for as long as the test takes; one test at a time."""
    folder, script = Path("/data"), Path("/data/train.py")
    if not os.access(folder if folder.exists() else "/", os.W_OK):
        # Nor could the lock be taken, where another user has made it.
        pytest.skip("/data cannot be made or written to")
    with open(Path(tempfile.gettempdir()) / "grass-tests-data.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = not folder.exists()
        if script.exists():
            pytest.skip("/data has a train.py of another's")
        folder.mkdir(exist_ok=True)
        script.write_text(TRAIN)
        yield folder
        script.unlink()
        if made:
            folder.rmdir()


@pytest.fixture
def furnished(cold: GrassHome) -> GrassHome:
    """A home whose user has all that the examples speak of."""
    desk = cold.desk
    (desk / "train.py").write_text(TRAIN)
    (desk / "main.py").write_text(f"#!{sys.executable} -S\n{TRAIN}")
    (desk / "main.py").chmod(0o755)
    (desk / "a.py").write_text("print('a')\n")
    (desk / "b.py").write_text("print('b')\n")
    (desk / "paper.pdf").write_text("much ado\n")
    (desk / "capacity.json5").write_text("{gpu: 4, /* pretend */ cpu: 16}\n")
    (desk / "jobs.txt").write_text("python a.py\npython b.py && python a.py\n")
    cold.add_program("lpr", 'echo "printing $*"')
    return cold


def each(home: GrassHome, block: str) -> list[Ran]:
    """Run a block line by line."""
    return [home.shell(line) for line in block.splitlines()]


def codes(ran: list[Ran]) -> list[int]:
    return [one.returncode for one in ran]


def trained(home: GrassHome, id: int) -> dict[str, object]:
    """Return what a stub of a training script saw."""
    assert home.wait(id)["state"] == "succeeded", home.logs(id)
    seen: dict[str, object] = json.loads(home.logs(id))
    return seen


def test_the_local_setup_runs_beside_a_daemon_in_the_foreground(
    furnished: GrassHome,
) -> None:
    daemon = furnished.popen("daemon")
    until_ready(daemon)
    ran = each(furnished, LOCAL_SETUP)
    assert codes(ran) == [0, 0, 4, 0]
    assert "no queue or program `job2`" in ran[2].stderr
    assert ran[2].stderr.count("\n") == 1
    first = trained(furnished, 1)
    assert first["argv"] == ["arg1", "arg2", "arg3"]
    assert first["CUDA_VISIBLE_DEVICES"] == "0"
    assert trained(furnished, 2)["CUDA_VISIBLE_DEVICES"] == ""
    assert furnished.shell("grass stop").returncode == 0
    daemon.communicate()
    assert daemon.returncode == 0


def test_the_early_example_gets_one_of_the_four_gpus(furnished: GrassHome) -> None:
    assert codes(each(furnished, EARLY_EXAMPLE)) == [0, 0]
    seen = trained(furnished, 1)
    assert seen["argv"] == ["lr=0.01"]
    assert seen["CUDA_VISIBLE_DEVICES"] in ("0", "1", "2", "3")


def test_the_early_usage_runs(furnished: GrassHome, data: Path) -> None:
    ran = each(furnished, EARLY_USAGE)
    assert codes(ran) == [0] * 6, ran
    assert trained(furnished, 1)["cwd"] == str(furnished.desk)
    seen = trained(furnished, 2)
    assert (seen["cwd"], seen["PYTHONPATH"], seen["TERM"]) == (str(data), "..", "..")
    assert "q1" in ran[4].stdout
    assert "q1" in ran[5].stdout


@pytest.mark.parametrize("script", [EARLY_SCRIPT, LATE_SCRIPT], ids=["early", "late"])
def test_a_script_generates_six_jobs(
    furnished: GrassHome, data: Path, script: str
) -> None:
    furnished.ok("create-queue", "q1", "--json", "{gpu:2,cpu:16}")
    (furnished.desk / "generate.py").write_text(script)
    ran = furnished.shell("python generate.py")
    assert ran.stdout.split() == ["1", "2", "3", "4", "5", "6"], ran.stderr
    wanted = [[f"lr={r}", f"batch_size={b}"] for r in (0.01, 0.1) for b in (8, 16, 32)]
    for id, argv in enumerate(wanted, 1):
        seen = trained(furnished, id)
        assert seen["argv"] == argv
        assert seen["cwd"] == str(data)
        assert seen["CUDA_VISIBLE_DEVICES"] in ("0", "1")


def test_a_queue_with_a_prefix_takes_dashes_and_paper(furnished: GrassHome) -> None:
    lines = """\
grass create-queue --capacity "{gpu:4}" cifar100 python train.py
grass create-queue --capacity "{printer:1}" print lpr
grass enqueue --require "{printer:1}" print paper.pdf
grass enqueue --require "{gpu:1}" cifar100 --lr=0.01
grass show
"""
    assert codes(each(furnished, lines)) == [0] * 5
    assert furnished.wait(1)["state"] == "succeeded"
    assert furnished.logs(1) == "printing paper.pdf\n"
    assert trained(furnished, 2)["argv"] == ["--lr=0.01"]


def test_every_line_of_the_tour_runs(furnished: GrassHome, data: Path) -> None:
    ran = each(furnished, TOUR)
    for line, one in zip(TOUR.splitlines(), ran, strict=True):
        assert one.returncode == 0, f"{line}\n{one.stderr}"
    enqueued = [one.stdout for one in ran[5:14]]
    assert enqueued == [*(f"{id}\n" for id in range(1, 9)), "9-10\n"]
    seen = {id: trained(furnished, id) for id in (1, 3, 4, 5, 6, 7)}
    assert seen[1]["argv"] == ["arg1", "arg2", "arg3"]
    assert seen[4]["argv"] == ["lr=0.1"]
    assert [seen[id]["cwd"] for id in (4, 5, 6)] == [str(data)] * 3
    assert (seen[6]["PYTHONPATH"], seen[6]["TERM"]) == ("..", "xterm")
    assert [furnished.logs(id) for id in (8, 9, 10)] == ["a\nb\n", "a\n", "b\na\n"]
    assert json.loads(ran[14].stdout[ran[14].stdout.index("\n{") :])["jobs"]
    gone = furnished.shell("grass show q1")
    assert gone.returncode == 4


def test_units_may_be_counted_listed_or_named(home: GrassHome) -> None:
    """The three ways of the JSON syntax, and the one people get wrong."""
    home.ok("create-queue", "a", "--json", "{disk:4}")
    home.ok("create-queue", "b", "--json", "{hdd:[32,64,128]}")
    home.ok("create-queue", "c", "--json", "{gpu:{'2':1,'4':1}}")
    home.ok("create-queue", "d", "--json", "{RAM:512}")
    home.ok("create-queue", "e", "--json", "{Ram:[512]}")
    capacity = home.client.overview()["workers"][0]["capacity"]
    assert capacity["disk"] == {"0": 1, "1": 1, "2": 1, "3": 1}
    assert capacity["hdd"] == {"0": 32, "1": 64, "2": 128}
    assert capacity["gpu"] == {"2": 1, "4": 1}
    assert capacity["RAM"] == {str(unit): 1 for unit in range(512)}
    assert capacity["Ram"] == {"0": 512}


def test_a_named_unit_is_what_the_placeholder_becomes(home: GrassHome) -> None:
    home.ok("create-queue", "q", "--json", "{gpu:{'2':1,'4':1}}")
    id = home.enqueue("q", "--json", "{gpu:2}", "--", "echo", "{gpu}")
    home.wait(id)
    assert home.logs(id) == "2,4\n"


def test_a_program_in_the_queues_directory_is_found(furnished: GrassHome) -> None:
    """`main.py` is on no PATH; it lies where the queue was created."""
    assert furnished.shell("grass create-queue job1 main.py arg1").returncode == 0
    elsewhere = furnished.bin
    ran = subprocess.run(
        shlex.split("grass enqueue job1 arg2"),
        cwd=elsewhere,
        env=furnished.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    seen = trained(furnished, int(ran.stdout))
    assert (seen["argv"], seen["cwd"]) == (["arg1", "arg2"], str(furnished.desk))
