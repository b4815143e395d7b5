"""`with grass.allocate(...)`: a process holds units as a guest."""

import os
import signal
import subprocess
import sys

import pytest

import grass
from grass.profiles.guest_calls import GuestCalls
from grass.profiles.process_allocations import state
from tests.profiles.programs import SOURCE, Programs, python
from tests.support.homes import GrassHome
from tests.support.patience import until

HOLD = """
import grass, os, sys
with grass.allocate(gpu=1, name="held") as a:
    print(a.job, *a.gpus, os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
    sys.stdin.readline()
print("after", os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def lab(shared: GrassHome) -> GrassHome:
    """Give a home with two GPUs that were declared."""
    known = shared.client.workers()["workers"][0]["capacity"]
    if "gpu" not in known:
        shared.ok("capacity", "add", "{gpu:2}")
    return shared


def held(programs: Programs, home: GrassHome) -> tuple[subprocess.Popen[str], int]:
    """Begin a program that holds a GPU, and return its job."""
    program = programs.begin(home, HOLD)
    assert program.stdout is not None
    return program, int(program.stdout.readline().split()[0])


def ended(home: GrassHome, job: int) -> dict[str, object]:
    return home.wait(job)


def test_process_gets_units_and_gives_them_back(
    lab: GrassHome, programs: Programs
) -> None:
    program, job = held(programs, lab)
    document = lab.client.job(job)
    assert (document["state"], document["name"]) == ("running", "held")
    assert document["pid"] == program.pid
    assert document["allocation"]["gpu"]
    assert program.stdin is not None
    program.stdin.write("\n")
    program.stdin.flush()
    assert ended(lab, job)["state"] == "succeeded"
    assert program.stdout is not None
    assert program.stdout.readline() == "after None\n"
    assert program.poll() is None
    program.communicate("\n")


def test_guests_wait_for_each_other(lab: GrassHome, programs: Programs) -> None:
    both = [held(programs, lab)[0] for _ in range(2)]
    third = programs.begin(lab, HOLD)
    queued = until(
        lambda: list(lab.client.jobs(states=["queued"])),
        "no guest waits",
    )
    assert len(queued) == 1
    both[0].communicate("\n\n")
    assert third.stdout is not None
    assert third.stdout.readline().startswith(f"{queued[0]['id']} ")
    both[1].communicate("\n\n")
    third.communicate("\n\n")


def test_guest_that_is_killed_gives_its_units_back(
    lab: GrassHome, programs: Programs
) -> None:
    program, job = held(programs, lab)
    program.kill()
    document = ended(lab, job)
    assert document["state"] == "failed"
    program.communicate()


def test_guest_that_waits_and_is_killed_is_cancelled(
    lab: GrassHome, programs: Programs
) -> None:
    both = [held(programs, lab)[0] for _ in range(2)]
    third = programs.begin(lab, HOLD)
    (queued,) = until(
        lambda: list(lab.client.jobs(states=["queued"])),
        "no guest waits",
    )
    third.kill()
    third.communicate()
    assert ended(lab, queued["id"])["state"] == "cancelled"
    for one in both:
        one.communicate("\n\n")


def test_cancel_signals_the_process(lab: GrassHome, programs: Programs) -> None:
    program, job = held(programs, lab)
    lab.ok("cancel", str(job))
    assert program.wait() == -signal.SIGTERM
    assert ended(lab, job)["state"] == "cancelled"
    program.communicate()


def test_ctrl_c_while_it_waits_cancels_the_job(
    lab: GrassHome, programs: Programs
) -> None:
    both = [held(programs, lab)[0] for _ in range(2)]
    third = programs.begin(lab, HOLD)
    (queued,) = until(
        lambda: list(lab.client.jobs(states=["queued"])),
        "no guest waits",
    )
    third.send_signal(signal.SIGINT)
    _, said = third.communicate()
    assert "KeyboardInterrupt" in said
    assert ended(lab, queued["id"])["state"] == "cancelled"
    for one in both:
        one.communicate("\n\n")


def test_exception_passes_through_and_the_job_has_failed(lab: GrassHome) -> None:
    ran = python(
        lab,
        "import grass\n"
        "with grass.allocate(gpu=1) as a:\n"
        "    print(a.job, flush=True)\n"
        "    raise ValueError('broken')\n",
    )
    assert "ValueError: broken" in ran.stderr
    document = ended(lab, int(ran.stdout))
    assert (document["state"], document["exit_code"]) == ("failed", 1)


def test_more_than_there_is_is_refused(lab: GrassHome) -> None:
    ran = python(lab, "import grass\nwith grass.allocate(gpu=8): pass")
    assert "NeverFits" in ran.stderr


def test_inside_a_job_its_own_units_are_taken(
    lab: GrassHome, programs: Programs
) -> None:
    code = (
        "import grass, os\n"
        "with grass.allocate(gpu=1) as a:\n"
        "    print(a.job, a.gpus == os.environ['GRASS_GPU'].split(','))\n"
    )
    (lab.desk / "inside.py").write_text(code)
    words = ("-g", "2", "--env", f"PYTHONPATH={SOURCE}", "--")
    job = lab.enqueue(*words, sys.executable, str(lab.desk / "inside.py"))
    assert lab.wait(job)["state"] == "succeeded"
    assert lab.logs(job) == "None True\n"


def test_inside_a_job_more_than_it_has_is_refused(lab: GrassHome) -> None:
    ran = python(
        lab,
        "import grass\n"
        "def ask(**what):\n"
        "    try:\n"
        "        with grass.allocate(**what): print('held')\n"
        "    except grass.errors.GrassError as error: print(error)\n"
        "with grass.allocate(gpu=1, cpu=1):\n"
        "    ask(gpu=0.5, cpu=4, vram='8G')\n"
        "    ask(gpu=2)\n"
        "    ask(require={'licence': 1})\n"
        "    ask(gpu='many')\n",
    )
    held, few, none, wrong = ran.stdout.splitlines()
    assert held == "held"
    assert "which has 1 of the 2 gpu that are asked for" in few
    assert "which has no licence" in none
    assert wrong == "gpu must be a number, not 'many'"


TORCH = """
import sys, types
def empty_cache(): print("freed", flush=True)
cuda = types.SimpleNamespace(is_initialized=lambda: True, empty_cache=empty_cache)
sys.modules["torch"] = types.SimpleNamespace(cuda=cuda)
"""


def test_memory_that_torch_keeps_is_freed_before_a_gpu_is_given_back(
    lab: GrassHome,
) -> None:
    ran = python(
        lab,
        TORCH + "import grass\n"
        "with grass.allocate(gpu=1) as a:\n"
        "    with grass.allocate(gpu=1): pass\n"
        "    print('held')\n"
        "with grass.allocate(cpu=1): pass\n"
        "print(a.job)\n",
    )
    assert ran.stdout.splitlines()[:2] == ["held", "freed"], ran.stderr
    assert ran.stdout.splitlines()[2].isdecimal()


def test_a_process_that_waits_for_its_own_memory_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    why = f"python (pid {os.getpid()}, me) uses 20G of gpu 0"
    waits = {"environment": {}, "state": "queued", "reason": why}
    replies = iter([waits, waits, {"environment": {"GRASS_GPU": "0"}}])
    monkeypatch.setattr(GuestCalls, "wait", lambda *_: next(replies))

    grass.allocate(gpu=1)._await_start(GuestCalls(), 7)

    assert "job 7 waits for memory that this process holds itself" in (
        capsys.readouterr().err
    )


def test_an_allocation_says_what_it_holds(lab: GrassHome) -> None:
    ran = python(
        lab,
        "import grass\n"
        "a = grass.allocate(gpu=1)\n"
        "print(a)\n"
        "with a: print(a)\n"
        "try: a.__enter__()\n"
        "except grass.errors.UsageError as error: print(error)\n",
    )
    before, inside, twice = ran.stdout.splitlines()
    assert before == "<Allocation: nothing>"
    assert inside == "<Allocation: gpu 0>"
    assert twice == "this allocation was used already (call `allocate` again)"


def test_child_of_a_guest_takes_from_its_units(lab: GrassHome) -> None:
    ran = python(
        lab,
        "import grass, os, subprocess, sys\n"
        "inside = 'with grass.allocate(gpu=1) as a: print(a.job, a.gpus)'\n"
        "child = 'import grass\\n' + inside\n"
        "with grass.allocate(gpu=2) as a:\n"
        "    subprocess.run([sys.executable, '-c', child], check=True)\n"
        "    with grass.allocate(gpu=1) as b: print(b.job, b.gpus)\n",
    )
    assert ran.stdout == "None ['0', '1']\n" * 2, ran.stderr


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_async_block_holds_units(lab: GrassHome, loop: str) -> None:
    ran = python(
        lab,
        "import anyio, grass\n"
        "async def one():\n"
        "    async with grass.allocate(gpu=1) as a:\n"
        "        await anyio.sleep(0.1)\n"
        "        print(a.job)\n"
        "async def main():\n"
        "    async with anyio.create_task_group() as group:\n"
        "        for _ in range(2): group.start_soon(one)\n"
        f"anyio.run(main, backend={loop!r})\n",
    )
    jobs = [int(one) for one in ran.stdout.split()]
    assert len(set(jobs)) == 2, ran.stderr
    assert {lab.wait(one)["state"] for one in jobs} == {"succeeded"}


def test_guest_cannot_be_run_again(lab: GrassHome) -> None:
    ran = python(
        lab, "import grass\nwith grass.allocate(gpu=1) as a: print(a.job, flush=True)"
    )
    lab.wait(int(ran.stdout))
    again = lab.run("rerun", ran.stdout.strip())
    assert again.returncode == 5
    assert "guest" in again.stderr


def test_guest_outlives_the_daemon(lab: GrassHome, programs: Programs) -> None:
    program, job = held(programs, lab)
    lab.ok("restart")
    assert lab.client.job(job)["state"] == "running"
    assert lab.client.job(job)["pid"] == program.pid
    program.communicate("\n\n")
    assert lab.wait(job)["state"] == "succeeded"


def test_without_a_daemon_it_runs_if_allowed_and_says_so_once(
    cold: GrassHome,
) -> None:
    ran = python(
        cold,
        "import grass\n"
        "@grass.job(continue_on_server_unavailable=True)\n"
        "def f(): return 7\n"
        "print(f() + f())\n",
        GRASS_AUTOSTART="0",
    )
    assert ran.stdout == "14\n", ran.stderr
    assert ran.stderr.count("without an allocation") == 1
    plain = python(
        cold, "import grass\nwith grass.allocate(gpu=1): pass", GRASS_AUTOSTART="0"
    )
    assert "NoDaemon" in plain.stderr


def test_process_keeps_its_first_gpu_and_waits_for_it(
    lab: GrassHome, programs: Programs
) -> None:
    twice = """
import grass, sys
for _ in range(2):
    with grass.allocate(gpu=1) as a: print(*a.gpus, flush=True)
    sys.stdin.readline()
"""
    program = programs.begin(lab, twice)
    assert program.stdout is not None
    assert program.stdin is not None
    first = program.stdout.readline().strip()
    holders = {}
    for _ in range(2):
        holder, job = held(programs, lab)
        (unit,) = lab.client.job(job)["allocation"]["gpu"]
        holders[unit] = holder
    (other,) = holders.keys() - {first}
    holders[other].communicate("\n\n")
    program.stdin.write("\n")
    program.stdin.flush()
    (waits,) = until(
        lambda: list(lab.client.jobs(states=["queued"])), "it does not ask again"
    )
    assert f"of gpu {first}" in lab.client.job(waits["id"])["reason"]
    holders[first].communicate("\n\n")
    assert program.stdout.readline().strip() == first


def test_a_thread_with_the_context_of_a_block_takes_from_it(lab: GrassHome) -> None:
    ran = python(
        lab,
        "import contextvars, grass\n"
        "from threading import Thread\n"
        "def inner():\n"
        "    with grass.allocate(gpu=1) as b: print(b.job)\n"
        "def run(context):\n"
        "    thread = Thread(target=context.run, args=(inner,))\n"
        "    thread.start()\n"
        "    thread.join()\n"
        "with grass.allocate(gpu=1) as a:\n"
        "    context = contextvars.copy_context()\n"
        "    run(context)\n"
        # After the block it is inside of nothing.
        "run(context)\n",
    )
    inside, after = ran.stdout.splitlines()
    assert inside == "None", ran.stderr
    assert after.isdecimal()


def test_a_thread_that_waits_for_another_of_its_process_is_told_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = {"environment": {}, "state": "queued", "reason": "needs gpu 1"}
    replies = iter([waits, waits, {"environment": {"GRASS_GPU": "0"}}])
    monkeypatch.setattr(GuestCalls, "wait", lambda *_: next(replies))
    monkeypatch.setitem(state._held, 6, "guest.6")

    grass.allocate(gpu=1)._await_start(GuestCalls(), 7)

    told = capsys.readouterr().err
    assert "job 7 waits while another thread of this process holds units" in told


def test_threads_of_one_process_share_its_gpu(lab: GrassHome) -> None:
    ran = python(
        lab,
        "import grass\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def one(_):\n"
        "    with grass.allocate(gpu=1) as a: return a.gpus[0]\n"
        "with ThreadPoolExecutor(4) as pool:\n"
        "    print(len(set(pool.map(one, range(6)))))\n",
    )
    assert ran.stdout == "1\n", ran.stderr
