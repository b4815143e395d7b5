"""The programs of an engine, as a daemon runs them."""

from pathlib import Path

import pytest
import uvloop

from grass.engines import engine_commands
from grass.engines.engine_commands import EngineCommands
from grass.errors import CannotAsk


def test_a_program_may_end_before_it_reads_its_script() -> None:
    async def run_some() -> list[int]:
        commands = EngineCommands()
        long = "line of a script\n" * 10_000
        return [(await commands.run("true", script=long)).code for _ in range(40)]

    assert uvloop.run(run_some()) == [0] * 40


def test_a_program_reads_its_script_to_the_end() -> None:
    async def count() -> str:
        answer = await EngineCommands().run("wc", "-c", script="x" * 200_000)
        return answer.output.strip()

    assert uvloop.run(count()) == "200000"


_SSH = """#!/bin/sh
shift
exec sh -c "$*"
"""


@pytest.mark.parametrize("before", [[], ["timeout", "20"]])
def test_words_are_quoted_for_the_shell_behind_ssh(
    tmp_path: Path, before: list[str]
) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text(_SSH)
    ssh.chmod(0o755)
    commands = EngineCommands([*before, str(ssh), "login1"])
    words = ("printf", "%s|", "a b", "$HOME", "c;d")
    assert uvloop.run(commands.run(*words)).output == "a b|$HOME|c;d|"


@pytest.mark.parametrize("code", [124, 137, 255])
def test_a_connection_that_fails_has_said_nothing(tmp_path: Path, code: int) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\nexit {code}\n")
    ssh.chmod(0o755)
    with pytest.raises(CannotAsk):
        uvloop.run(EngineCommands(["env", str(ssh), "login1"]).run("sbatch"))


def test_a_program_that_takes_too_long_is_quoted() -> None:
    commands = EngineCommands(limit_s=0.5)
    script = "echo 'no file slurm.conf, retrying' >&2; exec sleep 600"
    with pytest.raises(CannotAsk) as raised:
        uvloop.run(commands.run("sh", "-c", script))
    assert str(raised.value) == (
        "`sh` did not answer within 0.5 s: no file slurm.conf, retrying"
    )


def test_a_list_that_is_too_long_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_commands, "MOST_OUTPUT", 10)
    commands = EngineCommands()
    assert uvloop.run(commands.run("printf", "0123456789")).output == "0123456789"
    with pytest.raises(CannotAsk, match="`printf` printed more than 10 bytes"):
        uvloop.run(commands.run("printf", "0123456789A"))
