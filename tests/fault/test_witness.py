"""The witness itself: what went wrong must show."""

import pytest

from tests.fault.witness import judge, line, most_at_once
from tests.support.homes import GrassHome

pytestmark = pytest.mark.daemon


def test_every_kind_of_damage_is_seen(home: GrassHome) -> None:
    ledger = home.desk / "ledger"
    numbers = {}
    for number in (1, 2, 3, 7):
        # The second ends as if it were another, as by a wrong exit code.
        told = line(ledger, number, 0.1)
        told = told.replace("exit 2", "exit 0")
        job = home.client.enqueue(told, name=str(number), cwd=str(home.desk))
        numbers[job] = number
    home.wait(*numbers)
    verdict = judge(home, ledger, numbers)
    assert verdict == ([], [], [2], [], [])
    assert 1 <= most_at_once(ledger) <= len(numbers)
    with ledger.open("a") as file:
        file.write("start 1 1.0\nend 1 2.0\n")
    (home.folder / "output" / "default" / "3" / "3" / "1.log").write_text("other\n")
    found = judge(home, ledger, {**numbers, 99: 99})
    assert not found.fine
    assert found == ([99], [1], [2], [3], [])
