"""A job that is left without a program."""

import pytest

from tests.support.homes import GrassHome

pytestmark = pytest.mark.daemon


def test_a_job_whose_queue_lost_its_command_fails_and_says_why(
    home: GrassHome,
) -> None:
    home.ok("create-queue", "--capacity", "{cpu:1}", "pq", "echo")
    home.ok("pause", "pq")
    id = home.enqueue("--queue", "pq", "--", "A=1")
    home.client.once("PATCH", "/queues/pq", {"command": []})
    home.ok("resume", "pq")
    job = home.wait(id)
    assert (job["state"], job["exit_code"]) == ("failed", None)
    assert job["reason"].startswith("could not start: ")
    assert home.run("wait", str(id)).returncode == 125
