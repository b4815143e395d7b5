"""`@grass.job`: functions that run in their caller's process, each as a job."""

import asyncio
import enum
import itertools
import subprocess
import sys

import pytest

import grass
from grass.errors import UsageError
from grass.profiles.allocation import exit_code_of, policy_named
from grass.profiles.job_decorator import type_of
from tests.profiles.programs import SOURCE, environment, python, script
from tests.support.homes import GrassHome
from tests.support.patience import PATIENCE_S


def named(home: GrassHome, name: str) -> list[dict[str, object]]:
    return [one for one in home.client.jobs() if one["name"] == name]


@pytest.fixture
def lab(shared: GrassHome) -> GrassHome:
    """Give a home with one GPU that was declared."""
    shared.ok("capacity", "add", "{gpu:1}")
    return shared


def test_function_is_a_job_of_its_type(lab: GrassHome) -> None:
    code = """
import grass as grn

@grn.job
def plain(x): return x + 1

@grn.job()
def called(x): return x + 2

@grn.job(jobstr="mine", resource_policy="pack", gpu=0.5)
def with_names(x): return x + 3

class Model:
    @grn.job
    def fit(self): return 4

print(plain(0), called(x=0), with_names(0), Model().fit(), plain.__name__)
"""
    ran = script(lab, "kinds.py", code)
    assert ran.stdout == "1 2 3 4 plain\n", ran.stderr
    lab.client.wait_all(PATIENCE_S)
    names = {one["name"]: one["state"] for one in lab.client.jobs()}
    wanted = {"kinds.py::plain", "kinds.py::called", "mine", "kinds.py::Model.fit"}
    assert wanted <= names.keys()
    assert {names[one] for one in wanted} == {"succeeded"}


def test_recursion_takes_from_the_first_call(lab: GrassHome) -> None:
    code = """
import grass

@grass.job
def factorial(n): return 1 if n < 2 else n * factorial(n - 1)

print(factorial(5))
"""
    assert script(lab, "recursion.py", code).stdout == "120\n"
    assert len(named(lab, "recursion.py::factorial")) == 1


def test_threads_take_turns(lab: GrassHome) -> None:
    code = """
import grass
from concurrent.futures import ThreadPoolExecutor

inside = []

@grass.job
def one(n):
    inside.append(n)
    most = len(inside)
    inside.remove(n)
    return most

with ThreadPoolExecutor(4) as pool:
    print(max(pool.map(one, range(4))))
"""
    assert script(lab, "threads.py", code).stdout == "1\n"
    assert len(named(lab, "threads.py::one")) == 4


def test_coroutines_and_generators_hold_their_units(lab: GrassHome) -> None:
    code = """
import asyncio, grass, os

@grass.job
async def wait():
    await asyncio.sleep(0.01)
    return os.environ["CUDA_VISIBLE_DEVICES"]

@grass.job
def steps():
    yield os.environ["CUDA_VISIBLE_DEVICES"]
    yield "end"

async def main(): return await asyncio.gather(wait(), wait())
print(*asyncio.run(main()), *steps(), os.environ.get("CUDA_VISIBLE_DEVICES"))
"""
    ran = script(lab, "steps.py", code)
    assert ran.stdout == "0 0 0 end None\n", ran.stderr
    assert len(named(lab, "steps.py::wait")) == 2


def test_exception_passes_through_and_the_job_has_failed(lab: GrassHome) -> None:
    code = """
import grass

@grass.job
def broken(): raise KeyError("x")

try:
    broken()
except KeyError as error:
    print("passed", error)
"""
    assert script(lab, "broken.py", code).stdout == "passed 'x'\n"
    lab.client.wait_all(PATIENCE_S)
    (job,) = named(lab, "broken.py::broken")
    assert (job["state"], job["exit_code"]) == ("failed", 1)


def test_forked_processes_inside_a_job_share_its_units(lab: GrassHome) -> None:
    code = """
import grass, multiprocessing

@grass.job
def inner(x): return x * x

@grass.job
def outer():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(inner, range(3))

print(outer())
"""
    ran = script(lab, "forks.py", code)
    assert ran.stdout == "[0, 1, 4]\n", ran.stderr
    assert named(lab, "forks.py::inner") == []


def test_processes_of_another_tool_take_turns(lab: GrassHome) -> None:
    code = """
import grass, sys

@grass.job
def train(name): open(name, "a").write("began\\n")

train(sys.argv[1])
"""
    (lab.desk / "train.py").write_text(code)
    rule = f"\n%.out:\n\t{sys.executable} train.py $@\n"
    (lab.desk / "Makefile").write_text("all: a.out b.out c.out d.out" + rule)
    ran = subprocess.run(
        ["make", "-j4"],
        cwd=lab.desk,
        env=environment(lab),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    lab.client.wait_all(PATIENCE_S)
    jobs = named(lab, "train.py::train")
    assert [one["state"] for one in jobs] == ["succeeded"] * 4
    spans = sorted((str(one["started_at"]), str(one["finished_at"])) for one in jobs)
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans))


def _number(line: str) -> int:
    return int(line.split()[0])


def test_each_command_of_run_is_a_gpu_job(lab: GrassHome) -> None:
    code = """
import grass, os, sys

@grass.job
def inside(): return os.environ["GRASS_JOB_ID"], os.environ["CUDA_VISIBLE_DEVICES"]

print(sys.argv[1], *inside())
sys.exit(int(sys.argv[2]))
"""
    (lab.desk / "each.py").write_text(code)
    python = f"PYTHONPATH={SOURCE} {sys.executable} each.py"
    ran = lab.run("run", "--each", f"{python} a 0", f"{python} b 0")
    assert ran.returncode == 0, ran.stderr
    # Numbers of one digit are moved below those of two.
    lines = sorted((line.lstrip() for line in ran.stdout.splitlines()), key=_number)
    first = _number(lines[0])
    assert lines == [f"{first} | a {first} 0", f"{first + 1} | b {first + 1} 0"]
    assert named(lab, "each.py::inside") == []
    failed = lab.run("run", "--each", f"{python} a 0", f"{python} b 3")
    assert failed.returncode == 1
    assert "failed" in failed.stderr
    assert lab.run("run", "--each").returncode == 2


def test_commands_of_run_each_are_of_the_type_that_is_named(lab: GrassHome) -> None:
    assert lab.run("run", "--each", "--type", "fit", "echo a", "echo b").stdout
    assert [one["job_type"] for one in lab.client.jobs()] == ["fit", "fit"]


def test_each_command_gets_a_core_where_there_is_no_gpu(home: GrassHome) -> None:
    ran = home.run("run", "--each", "echo a b")
    assert ran.returncode == 0
    assert ran.stdout == "1 | a b\n"
    assert "one core instead" in ran.stderr


def test_job_takes_a_core_where_there_is_no_gpu(home: GrassHome) -> None:
    ran = python(
        home,
        "import grass\n"
        "@grass.job\n"
        "def f(): return 'done'\n"
        "with grass.allocate() as a: print(f(), a.gpus, sorted(a.units))\n",
    )
    assert ran.stdout == "done [] ['cpu']\n", ran.stderr


def test_import_is_cheap() -> None:
    looked = "import grass, sys; print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", looked], capture_output=True, text=True, check=True
    )
    forbidden = {"grass.profiles", "grass.client", "asyncio", "msgspec", "inspect"}
    assert not forbidden & set(ran.stdout.split())
    assert "job" in dir(grass)
    with pytest.raises(AttributeError, match="nothing"):
        _ = grass.nothing


def test_guest_imports_no_asyncio() -> None:
    looked = "import grass, sys; grass.allocate; print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", looked], capture_output=True, text=True, check=True
    )
    assert not {"asyncio", "msgspec", "http.client"} & set(ran.stdout.split())


def test_type_is_the_file_and_the_function() -> None:
    assert type_of(named).endswith("test_job.py::named")


def test_policies_have_the_names_that_grn_gave_them() -> None:
    class ResourcePolicy(enum.Enum):
        SPREAD = 0
        PACK = 1

    assert policy_named(ResourcePolicy.SPREAD) == policy_named("spread") == "spread"
    assert policy_named(ResourcePolicy.PACK) == policy_named("PACK") == "pack"
    with pytest.raises(UsageError, match="no policy `heap`"):
        policy_named("heap")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (None, 0),
        (ValueError(), 1),
        (KeyboardInterrupt(), 130),
        (SystemExit(), 0),
        (SystemExit(3), 3),
        (SystemExit("bad"), 1),
        (asyncio.CancelledError(), 1),
    ],
)
def test_exit_code_is_that_of_python(error: BaseException | None, code: int) -> None:
    assert exit_code_of(error) == code


def test_function_is_measured_by_one_other(lab: GrassHome) -> None:
    code = """
import grass

@grass.job
def long(): print("long")

@long.profile
def short(): raise SystemExit("short fails")

try:
    long.profile(short)
except grass.errors.UsageError as error:
    print(error.message)
long()
"""
    for _ in range(3):
        # However often it has failed: the long one does not run without it.
        ran = script(lab, "twice.py", f"import grass.errors\n{code}")
        assert ran.stdout == "`long` is measured by `short`\n"
        assert ran.stderr == "short fails\n"
    jobs = named(lab, "twice.py::long")
    assert [(one["state"], one["exit_code"]) for one in jobs] == [("failed", 1)] * 3


def test_short_function_is_called_once_in_a_process(lab: GrassHome) -> None:
    code = """
import asyncio, grass

@grass.job(continue_on_server_unavailable=True)
def long(x): print("long", x)

@long.profile
def short(x):
    print("short", x)
    if x < 2: raise ValueError(x)

for x in range(4):
    try:
        long(x)
    except ValueError:
        print("failed")

@grass.job
async def later(x): print("later", x)

@later.profile
async def soon(x): print("soon", x)

for x in range(2):
    asyncio.run(later(x))
"""
    expected = ["short 0", "failed", "short 1", "failed", "short 2", "long 2", "long 3"]
    expected += ["soon 0", "later 0", "later 1"]
    assert script(lab, "once.py", code).stdout.splitlines() == expected
