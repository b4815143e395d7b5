"""`grass show --csv`."""

import pytest

from tests.support.homes import GrassHome

pytestmark = pytest.mark.daemon


def test_jobs_are_printed_as_a_table(shared: GrassHome) -> None:
    job = shared.enqueue("--hold", "--name", "grün, blau", "--", "true")
    table = shared.ok("show", str(job), "--csv=id,name,state")
    assert table == f'id,name,state\n{job},"grün, blau",held\n'
    assert shared.ok("show", "--csv", str(job)).startswith("id,name,state,queue,")


@pytest.mark.parametrize("other", ["--json", "--sort=id", "--columns=id"])
def test_a_table_is_in_no_other_form(shared: GrassHome, other: str) -> None:
    ran = shared.run("show", "--csv", other)
    assert ran.returncode == 2
    assert "--csv does not go with" in ran.stderr
