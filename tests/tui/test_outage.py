"""`grass top` while the daemon is away, and once it is back."""

import pytest

from grass.tui.job_list import JobList
from tests.support.homes import GrassHome

from .playing import LARGE, Play, play

pytestmark = pytest.mark.daemon


def test_what_is_known_stays_with_its_age_until_the_daemon_is_back(
    home: GrassHome,
) -> None:
    home.enqueue("--hold", "--name", "earlier", "--", "true")

    async def scene(at: Play) -> None:
        await at.shows("earlier", "● live")
        home.kill_daemon()
        await at.shows("away, as of", "asking again")
        assert "earlier" in at.text()
        assert at.app.screen.has_class("-away")
        home.ok("start")
        home.enqueue("--hold", "--name", "afterwards", "--", "true")
        await at.shows("afterwards", "● live")
        assert len(at.app.screen.query_one(JobList).rows) == 2
        assert not at.app.screen.has_class("-away")

    play(home, scene, LARGE)
