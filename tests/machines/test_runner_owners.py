"""Two who may submit to one worker: each has runners of its own there."""

from pathlib import Path

from tests.machines.programs import Program, joined, node
from tests.support.homes import GrassHome
from tests.support.machines import Machine

TWICE = """
for _ in range(2):
    print(grain.enqueue(os.getpid).result(30))
"""


def runners(head: GrassHome, cwd: Path) -> set[str]:
    """Run two functions, one after the other; return the pids of their runners."""
    program = Program(head, TWICE, "", cwd=cwd)
    try:
        return set(program.result().split())
    finally:
        program.end()


def test_functions_of_two_tokens_never_share_a_runner(
    machine: Machine, tmp_path: Path
) -> None:
    broker, alice, bob = machine("broker"), machine("alice"), machine("bob")
    node(broker)
    joined(alice, broker)
    joined(bob, broker)
    bobs, alices = runners(bob, tmp_path), runners(alice, tmp_path)
    assert len(bobs) == len(alices) == 1
    assert bobs != alices
