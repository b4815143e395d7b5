"""The programs of an engine, as a daemon runs them."""

import uvloop

from grass.engines.engine_commands import EngineCommands


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
