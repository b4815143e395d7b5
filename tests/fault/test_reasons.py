"""Why a job was stopped is known, whichever process is killed meanwhile."""

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.patience import in_time
from tests.support.processes import await_end

pytestmark = pytest.mark.daemon


def test_a_time_limit_counts_though_the_keeper_is_killed_and_the_job_exits_with_0(
    home: GrassHome, gate: Fifo, news: Fifo
) -> None:
    trap = f"trap 'echo told > {news}; read x < {gate}; exit 0' TERM"
    line = f"{trap}; echo $$; while :; do sleep 0.05; done"

    def played(limit_s: float) -> tuple[int, int] | None:
        id = home.enqueue("--time-limit", f"{limit_s}s", line)
        told = home.await_output(id)
        return (id, int(told)) if told else None

    id, pid = in_time(played, "it does not come up")
    assert news.hear() == "told"
    home.kill_keeper()
    gate.tell()
    await_end(pid)
    job = home.wait(id)
    # Where the kernel does not tell how it ended, it is lost; it never succeeded.
    assert job["state"] in ("failed", "lost")
    assert job["reason"].startswith("time limit")
