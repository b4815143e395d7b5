"""Slurm alone: its words, its refusals, a controller that dies, a prefix."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from grass.engines.engine_commands import EngineCommands
from grass.engines.provider import PilotRequest
from grass.engines.slurm import STATES, Slurm
from grass.errors import CannotAsk, EngineRefusal, UsageError
from grass.model.pools import PilotState, PoolOptions, check_options
from tests.engines.asking import LONG, do, look, wait_for, wanted
from tests.support.patience import until
from tests.support.slurm import NODES, SlurmCluster

_FORGING = """#!/bin/sh
cat <<'END'
{lines}
END
"""


def forged(folder: Path, program: str, lines: str) -> Slurm:
    """Return a Slurm one of whose programs prints these lines."""
    path = folder / program
    path.write_text(_FORGING.format(lines=lines))
    path.chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    return Slurm(EngineCommands(environment=environment))


def real(cluster: SlurmCluster) -> Slurm:
    return Slurm(EngineCommands(environment=cluster.environment))


def test_every_word_of_slurm_has_a_meaning(folder: Path) -> None:
    lines = "\n".join(f"{n}|{word}|gpu|||{word}|None" for n, word in enumerate(STATES))
    slurm = forged(folder, "squeue", lines)
    reports = do(slurm.poll("grass-uni", list(STATES)))
    assert {word: one.state for word, one in reports.items()} == STATES
    ended = {word for word, state in STATES.items() if state is PilotState.ENDED}
    assert {"NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "TIMEOUT"} <= ended


def test_a_word_of_a_later_slurm_is_unknown_and_not_an_end(folder: Path) -> None:
    slurm = forged(folder, "squeue", "7|FROZEN_SOLID|gpu|n1||m1|Cold")
    report = do(slurm.poll("grass-uni", ["m1"]))["m1"]
    assert (report.state, report.word) == (PilotState.UNKNOWN, "FROZEN_SOLID")


def test_a_reason_may_hold_anything(folder: Path) -> None:
    slurm = forged(folder, "squeue", "7|PENDING|gpu||N/A|m1|a|b|c\nnonsense")
    report = do(slurm.poll("grass-uni", ["m1"]))["m1"]
    assert (report.state, report.reason) == (PilotState.PENDING, "a|b|c")
    assert report.expected_start == ""


def test_two_live_jobs_with_one_mark_are_unknown(folder: Path) -> None:
    lines = "7|RUNNING|gpu|n1||m1|None\n8|PENDING|gpu|||m1|None"
    report = do(forged(folder, "squeue", lines).poll("grass-uni", ["m1"]))["m1"]
    assert report.state is PilotState.UNKNOWN
    assert "7 and 8" in report.reason


def test_what_a_refused_submit_left_does_not_hide_a_live_job(folder: Path) -> None:
    lines = "7|FAILED|gpu|||m1|BadConstraints\n8|RUNNING|gpu|n2||m1|None"
    report = do(forged(folder, "squeue", lines).poll("grass-uni", ["m1"]))["m1"]
    assert (report.engine_id, report.place) == ("8", "gpu n2")


def test_a_missing_configuration_is_said_with_what_to_do(folder: Path) -> None:
    words = "sbatch: fatal: Could not establish a configuration source"
    slurm = forged(folder, "sbatch", f"END\necho '{words}' >&2; exit 1")
    with pytest.raises(CannotAsk, match="configuration source") as raised:
        do(slurm.check(wanted(folder, *LONG)))
    assert raised.value.hint == "set SLURM_CONF to its file, then `grass restart`"


def test_an_sbatch_that_prints_no_id_may_have_submitted(folder: Path) -> None:
    with pytest.raises(CannotAsk, match="no job id"):
        do(forged(folder, "sbatch", "welcome to login1").submit(wanted(folder)))


def test_a_host_without_slurm_says_so(folder: Path) -> None:
    slurm = Slurm(EngineCommands(environment={"PATH": str(folder)}))
    with pytest.raises(CannotAsk, match="`sbatch` cannot be run on this host"):
        do(slurm.check(wanted(folder)))


def test_a_remote_shell_gets_the_words_as_they_are(
    slurm_cluster: SlurmCluster, folder: Path
) -> None:
    ssh = folder / "ssh"
    ssh.write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')
    ssh.chmod(0o755)
    commands = EngineCommands([str(ssh), "login1"], slurm_cluster.environment)
    request = wanted(folder, "sh", "-c", "echo 'a  b' > here")
    do(Slurm(commands).submit(request))
    wait_for(real(slurm_cluster), request, PilotState.ENDED)
    assert (folder / "here").read_text() == "a  b\n"


@pytest.mark.parametrize("login", [False, True])
def test_a_pilot_has_no_private_variables_of_its_broker(
    slurm_cluster: SlurmCluster, folder: Path, login: bool
) -> None:
    environment = {**slurm_cluster.environment, "API_KEY": "of the broker"}
    slurm = Slurm(EngineCommands(environment=environment))
    request = replace(wanted(folder, "sh", "-c", "env > here"), login=login)
    do(slurm.submit(request))
    wait_for(slurm, request, PilotState.ENDED)
    names = {line.partition("=")[0] for line in (folder / "here").read_text().split()}
    assert {"PATH", "HOME", "SLURM_JOB_ID"} <= names
    assert "API_KEY" not in names


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--partition=nowhere",), "invalid partition specified: nowhere"),
        (("--no-such-option",), "no-such-option"),
    ],
)
def test_bad_options_are_refused_in_slurms_words(
    slurm_cluster: SlurmCluster, folder: Path, options: tuple[str, ...], words: str
) -> None:
    request = with_options(wanted(folder, *LONG), options)
    with pytest.raises(EngineRefusal, match=words):
        do(real(slurm_cluster).check(request))


def test_options_that_a_site_refuses_can_be_left_out(
    slurm_cluster: SlurmCluster, folder: Path
) -> None:
    commands = EngineCommands(environment=slurm_cluster.environment)
    request = wanted(folder, *LONG, gpus=9)
    with pytest.raises(EngineRefusal):
        do(Slurm(commands).check(request))
    assert do(Slurm(commands, omitted=["--gres"]).check(request))


@pytest.mark.parametrize(
    ("gpus", "asked"), [(0, []), (1, ["--gres=gpu:a100:1"]), (2, ["--gres=gpu:a100:2"])]
)
def test_a_type_of_gpus_goes_with_as_many_as_are_needed(
    folder: Path, gpus: int, asked: list[str]
) -> None:
    options = ("--partition=gpu", "--gres=gpu:a100:4", "--gres=shard:2")
    request = replace(wanted(folder), gpus=gpus, options=options)
    words = Slurm(EngineCommands()).preview(request).splitlines()[1].split()
    assert [word for word in words if word.startswith("--gres=gpu:a100")] == asked
    assert "--gres=shard:2" in words


def test_a_sites_options_win_but_never_hide_a_pilot(
    slurm_cluster: SlurmCluster, folder: Path
) -> None:
    own = ("--comment=lab", "--job-name=lab", "--requeue", "--time=7")
    request = with_options(wanted(folder, *LONG), own)
    commands = EngineCommands(environment=slurm_cluster.environment)
    slurm = Slurm(commands, omitted=["--comment", "--job-name"])
    engine_id = do(slurm.submit(request))
    assert look(slurm, request).engine_id == engine_id
    told = slurm_cluster.run("scontrol", "-o", "show", "job", engine_id)
    do(slurm.cancel([engine_id]))
    assert "TimeLimit=00:07:00" in told
    assert "Requeue=0" in told


@pytest.mark.parametrize(
    ("options", "omitted", "words"),
    [
        (["--partition=gpu", "--comment=x"], [], "`--comment=x` cannot be an option"),
        (["--job-name", "x"], [], "`--job-name` cannot be an option"),
        (["--array=1-3"], [], "`--array=1-3` cannot be an option"),
        (["--clusters=a,b"], [], "`--clusters=a,b` cannot be an option"),
        (["-Mb"], [], "`-Mb` cannot be an option"),
        (["-J", "x"], [], "`-J` cannot be an option"),
        (["-a1-3"], [], "`-a1-3` cannot be an option"),
        ([], ["--mem", "--comment"], "`--comment` cannot be left out"),
    ],
)
def test_options_that_hide_pilots_are_refused(
    options: list[str], omitted: list[str], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        check_options(declared(options, omitted))


def test_options_of_a_site_are_taken() -> None:
    usual = ["--account=lab", "-Alab", "--cluster-constraint=x", "--mail-type=END"]
    check_options(declared(usual, ["--mem"]))
    check_options(replace(declared(["-a", "-J"]), engine="command"))


def declared(options: list[str], omitted: list[str] | None = None) -> PoolOptions:
    return PoolOptions(
        name="uni",
        engine="slurm",
        max_workers=1,
        idle_s=1,
        time_limit_s=60,
        options=tuple(options),
        omitted=tuple(omitted or ()),
    )


def test_a_pilot_sees_only_the_gpu_that_it_was_given(
    slurm_cluster: SlurmCluster, folder: Path
) -> None:
    shown = "echo $CUDA_VISIBLE_DEVICES $SLURM_CPUS_ON_NODE > here"
    request = wanted(folder, "sh", "-c", shown, gpus=1)
    do(real(slurm_cluster).submit(request))
    wait_for(real(slurm_cluster), request, PilotState.ENDED)
    assert (folder / "here").read_text().split() in (["0", "1"], ["1", "1"])


def test_a_pilot_outlives_the_controller(
    slurm_cluster: SlurmCluster, folder: Path
) -> None:
    slurm, request = real(slurm_cluster), wanted(folder, *LONG)
    engine_id = do(slurm.submit(request))
    wait_for(slurm, request, PilotState.RUNNING)
    slurm_cluster.stop_controller()
    with pytest.raises(CannotAsk, match="Unable to contact"):
        look(slurm, request)
    slurm_cluster.start_controller()
    until(slurm_cluster.idle_nodes, "no node came back")
    assert look(slurm, request).engine_id == engine_id
    do(slurm.cancel([engine_id]))
    wait_for(slurm, request, PilotState.ENDED)
    until(slurm_cluster.idle_nodes, "a node stays busy", set(NODES).__eq__)


def test_after_a_restart_no_node_is_up_and_nothing_can_never_run(
    slurm_cluster: SlurmCluster, folder: Path
) -> None:
    slurm, request = real(slurm_cluster), wanted(folder, *LONG)
    slurm_cluster.stop_controller()
    slurm_cluster.start_controller()
    with pytest.raises(
        CannotAsk, match=r"not available, while . of 3 nodes are not up"
    ):
        do(slurm.check(request))
    until(slurm_cluster.idle_nodes, "a node stays away", set(NODES).__eq__)
    assert "to start at" in do(slurm.check(request))
    with pytest.raises(EngineRefusal, match=r"configuration is not available$"):
        do(slurm.check(with_options(request, ("--gres=gpu:9",))))


def test_what_waits_says_why_in_slurms_words(
    slurm_cluster: SlurmCluster, folder: Path
) -> None:
    slurm = real(slurm_cluster)
    request = with_options(wanted(folder, *LONG), ("--hold",))
    engine_id = do(slurm.submit(request))
    report = look(slurm, request)
    assert (report.state, report.place) == (PilotState.PENDING, "main")
    assert report.reason == "JobHeldUser"
    do(slurm.cancel([engine_id]))
    assert look(slurm, request).state is PilotState.ENDED


def with_options(request: PilotRequest, options: tuple[str, ...]) -> PilotRequest:
    return replace(request, options=options)
