"""From a start to exactly what the keeper runs."""

from typing import Any

import pytest

from grass.config import MARKER, user_environment
from grass.keeper.protocol import Notes, StartVerb
from grass.link.messages import Start
from grass.model.amount_text import WHOLE
from grass.model.worker import Unit
from grass.worker.core.prepare import Surroundings, start_verb

AROUND = Surroundings("/out", "/home/me", "/bin/bash", {"PATH": "/bin", "W": "1"})
ATTEMPT = "a" * 16 + ".7.2"


def verb(*words: str, around: Surroundings = AROUND, **fields: Any) -> StartVerb:
    start: dict[str, Any] = {
        "attempt": ATTEMPT,
        "job": 7,
        "number": 2,
        "name": "train",
        "project": "thesis",
        "words": words or ("true",),
        "shell": False,
        "allocation": {"gpu": {"1": WHOLE, "0": WHOLE}, "cpu": {"3": WHOLE}},
    }
    return start_verb(Start(**{**start, **fields}), around)


def env_of(*words: str, **fields: Any) -> dict[str, str]:
    return verb(*words, **fields).env


def test_later_wins_base_queue_own_env_and_leading_words() -> None:
    base = dict.fromkeys(("A", "B", "C", "GRASS_NAME", "D"), "base")
    env = env_of(
        "D=word",
        "run",
        base_env=base,
        queue_env=(("B", "queue"), ("C", "queue"), ("GRASS_NAME", "queue")),
        env=(("C", "env"), ("D", "env")),
    )
    assert [env[name] for name in "ABCD"] == ["base", "queue", "env", "word"]
    assert env["GRASS_NAME"] == "train"


def test_without_the_callers_environment_the_workers_own_is_the_base() -> None:
    assert env_of()["W"] == "1"
    assert "W" not in env_of(base_env={"A": "1"})


def test_a_job_learns_what_it_got() -> None:
    env = env_of()
    assert env["GRASS_GPU"] == "0,1"
    assert env["GRASS_CPU"] == "3"
    assert env["GRASS_JOB_ID"] == "7"
    assert env["GRASS_ATTEMPT"] == "2"
    assert env["GRASS_PROJECT"] == "thesis"
    assert env[MARKER] == ATTEMPT


def test_kinds_become_names_of_variables() -> None:
    env = env_of(allocation={"my.kind-x": {"a": 1}})
    assert env["GRASS_MY_KIND_X"] == "a"


def test_gpus_are_visible_only_as_far_as_they_were_given() -> None:
    env = env_of()
    assert env["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert env_of(allocation={})["CUDA_VISIBLE_DEVICES"] == ""
    assert env_of(allocation={"vram": {"1": 1}})["CUDA_VISIBLE_DEVICES"] == "1"
    chosen = env_of(env=(("CUDA_VISIBLE_DEVICES", "7"),))
    assert chosen["CUDA_VISIBLE_DEVICES"] == "7"
    inherited = env_of(base_env={"CUDA_VISIBLE_DEVICES": "5"})
    assert inherited["CUDA_VISIBLE_DEVICES"] == "0,1"


def test_python_prints_at_once_unless_told_otherwise() -> None:
    assert env_of()["PYTHONUNBUFFERED"] == "1"
    assert env_of(base_env={"PYTHONUNBUFFERED": ""})["PYTHONUNBUFFERED"] == ""


def test_threads_are_as_many_as_the_cores_asked_for_unless_set() -> None:
    name = "OMP_NUM_THREADS"
    assert name not in env_of()
    assert env_of(threads=4)[name] == "4"
    assert env_of(threads=4, base_env={name: "2"})[name] == "2"
    assert env_of(threads=4, queue_env=((name, "3"),))[name] == "3"
    assert env_of(threads=4, env=((name, "5"),))[name] == "5"


def test_the_marker_cannot_be_removed() -> None:
    assert env_of(env=((MARKER, "mine"),))[MARKER] == ATTEMPT


def test_placeholders_are_filled_everywhere() -> None:
    made = verb(
        "B={name}",
        "run",
        "--gpu={gpu}",
        "${gpu} {x}",
        env=(("A", "{cpu}"),),
        cwd="/data/{project}",
        output="{id}.{attempt}.log",
        stderr="err/{id}",
    )
    assert made.argv == ["run", "--gpu=0,1", "${gpu} {x}"]
    assert (made.env["A"], made.env["B"]) == ("3", "train")
    assert made.cwd == "/data/thesis"
    assert made.output == "/data/thesis/7.2.log"
    assert made.stderr == "/data/thesis/err/7"
    assert isinstance(made.meta, Notes)
    assert made.meta.output == made.output


def test_raw_turns_placeholders_off() -> None:
    made = verb("run", "{gpu}", raw=True, env=(("A", "{gpu}"),), cwd="/{id}")
    assert made.argv == ["run", "{gpu}"]
    assert made.env["A"] == "{gpu}"
    assert made.cwd == "/{id}"


def test_a_shell_line_runs_in_the_shell_that_was_asked_for() -> None:
    line = verb("a && b", shell=True, shell_program="zsh")
    assert line.argv == ["zsh", "-c", "a && b"]


def test_a_shell_line_is_one_argument_of_the_shell() -> None:
    made = verb("echo {gpu}; echo b", shell=True)
    assert made.argv == ["/bin/bash", "-c", "echo 0,1; echo b"]
    made = verb("A=1 echo $A", shell=True)
    assert made.argv == ["/bin/bash", "-c", "A=1 echo $A"]
    made = verb("A=1", "echo $A b", shell=True)
    assert made.argv == ["/bin/bash", "-c", "echo $A b"]
    assert made.env["A"] == "1"


def test_after_a_prefix_every_word_is_an_argument() -> None:
    made = verb("A=1", "-x", "two words", prefix=("python", "{gpu}.py"))
    assert made.argv == ["python", "0,1.py", "A=1", "-x", "two words"]
    assert "A" not in made.env


def test_output_has_a_place_of_its_own_unless_told_otherwise() -> None:
    assert verb().output == "/out/thesis/train/7/2.log"
    assert verb(name="../../etc").output == "/out/thesis/.._.._etc/7/2.log"
    assert verb(name="..").output == "/out/thesis/___/7/2.log"
    assert verb(output="/tmp/x").output == "/tmp/x"
    assert verb(output="x").output == "/home/me/x"
    assert verb().stderr is None


def test_directory_and_umask_have_defaults() -> None:
    assert verb().cwd == "/home/me"
    assert verb().umask == 0o022
    assert verb(umask=0).umask == 0


@pytest.mark.parametrize(
    ("fields", "cpus"),
    [
        ({}, None),
        ({"pin": True}, [3]),
        ({"pin": True, "allocation": {"gpu": {"0": 1}}}, None),
        ({"pin": True, "allocation": {"cpu": {"core": 1}}}, None),
    ],
)
def test_only_pinned_jobs_are_bound_to_their_cores(
    fields: dict[str, Any], cpus: list[int] | None
) -> None:
    assert verb(**fields).cpus == cpus


def test_bytes_that_are_not_utf8_pass_through() -> None:
    made = verb("caf\udce9", env=(("A", "\udcff"),), cwd="/caf\udce9")
    assert made.argv == ["caf\udce9"]
    assert made.env["A"] == "\udcff"


def test_a_daemon_started_inside_a_job_forgets_that_job() -> None:
    inside = {MARKER: "x", "GRASS_GPU": "0", "GRASS_HOME": "/h", "A": "1"}
    assert user_environment(inside) == {"GRASS_HOME": "/h", "A": "1"}
    assert user_environment({"GRASS_GPU": "0"}) == {"GRASS_GPU": "0"}


def test_a_job_that_is_given_input_runs_under_a_host() -> None:
    around = AROUND._replace(input_host=("/py", "host.py"), input_folder="/keeper")
    path = f"/keeper/input-{ATTEMPT}"
    for stdin, window, size in (
        ("pipe", None, ["24", "80"]),
        ("pty", (30, 99), ["30", "99"]),
    ):
        given = verb("cat", around=around, stdin=stdin, window=window)
        assert given.under == ["/py", "host.py", path, stdin, *size]
        assert given.argv == ["cat"]
        assert isinstance(given.meta, Notes)
        assert given.meta.input
    assert verb("cat").under == []


def test_a_job_with_a_gpu_learns_where_its_processes_meet() -> None:
    around = AROUND._replace(port=20_017)
    made = verb("run", around=around)
    assert (made.env["MASTER_ADDR"], made.env["MASTER_PORT"]) == ("127.0.0.1", "20017")
    assert isinstance(made.meta, Notes)
    assert made.meta.port == 20_017
    for allocation, given in (({"cpu": {"0": WHOLE}}, 0), ({"vram": {"0": 9}}, 20_017)):
        other = verb("run", around=around, allocation=allocation)
        assert ("MASTER_PORT" in other.env) == bool(given)
        assert isinstance(other.meta, Notes)
        assert other.meta.port == given
    assert "MASTER_PORT" not in verb("run").env


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        (("run",), {"base_env": {"MASTER_PORT": "1234"}}),
        (("run",), {"queue_env": (("MASTER_PORT", "1234"),)}),
        (("run",), {"env": (("MASTER_PORT", "1234"),)}),
        (("MASTER_PORT=1234", "run"), {}),
    ],
)
def test_a_port_that_is_set_is_left_alone_and_so_is_the_address(
    words: tuple[str, ...], fields: dict[str, Any]
) -> None:
    made = verb(*words, around=AROUND._replace(port=20_017), **fields)
    assert made.env["MASTER_PORT"] == "1234"
    assert "MASTER_ADDR" not in made.env
    assert isinstance(made.meta, Notes)
    assert made.meta.port == 0


def test_an_address_that_is_set_is_left_alone() -> None:
    around = AROUND._replace(port=20_017)
    made = verb("run", around=around, env=(("MASTER_ADDR", "desk"),))
    assert (made.env["MASTER_ADDR"], made.env["MASTER_PORT"]) == ("desk", "20017")


def test_a_job_that_a_job_enqueues_does_not_meet_at_the_port_of_that_job() -> None:
    around = AROUND._replace(port=20_017)
    outer = verb("run", around=around).env
    inside = user_environment(outer)
    assert not {"MASTER_ADDR", "MASTER_PORT"} & inside.keys()
    own = user_environment({**outer, "MASTER_PORT": "1234", "MASTER_ADDR": "desk"})
    assert (own["MASTER_ADDR"], own["MASTER_PORT"]) == ("desk", "1234")


def test_the_devices_that_cuda_shows_may_have_other_names_than_the_units() -> None:
    gpus = {
        "0": Unit(WHOLE, {"uuid": "GPU-a"}),
        "1.2": Unit(WHOLE, {"uuid": "MIG-b"}),
    }
    around = AROUND._replace(gpus=gpus)
    made = verb("run", "{gpu}", around=around, allocation={"gpu": {"1.2": WHOLE}})
    assert made.env["CUDA_VISIBLE_DEVICES"] == "MIG-b"
    assert (made.env["GRASS_GPU"], made.argv) == ("1.2", ["run", "1.2"])


RAM_AND_CORES = {"ram": {"0": 8 * WHOLE}, "cpu": {"0": WHOLE, "1": WHOLE // 2}}


@pytest.mark.parametrize(
    ("fields", "limits"),
    [
        ({"enforce": "warn", "threads": 1}, (8 * 2**30, 1.5)),
        ({"enforce": "warn"}, (8 * 2**30, None)),
        ({"threads": 1}, (None, None)),
        ({"enforce": "warn", "threads": 1, "guest": (7, 9)}, (None, None)),
    ],
)
def test_an_enforced_job_is_limited_to_what_it_asked_for(
    fields: dict[str, Any], limits: tuple[Any, Any]
) -> None:
    found = verb(allocation=RAM_AND_CORES, **fields)
    assert (found.memory_max, found.cpu_max) == limits
