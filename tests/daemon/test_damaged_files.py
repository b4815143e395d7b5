"""Small files of the state directory with garbage in them: each is named."""

import pytest

from tests.support.homes import GrassHome

pytestmark = pytest.mark.daemon

FILES = (
    *("worker-id", "cluster", "keeper/instance", "daemon-options.json"),
    *("brokers.json", "own-cluster.json", "pilot-folders.json"),
)


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_named_with_the_next_step(home: GrassHome, name: str) -> None:
    held = home.enqueue("--hold", "--", "true")
    home.ok("stop")
    path = home.folder / name
    before = path.read_bytes() if path.exists() else None
    for garbage in (b"\xff\xfe\x00garbage\n", b"no such thing\n"):
        path.write_bytes(garbage)
        path.chmod(0o600)
        refused = home.run("start")
        assert refused.returncode == 1
        assert f"{path} is damaged" in refused.stderr
        assert "remove it" in refused.stderr
        assert refused.stderr.count("\n") == 1
        assert path.read_bytes() == garbage
    # What was said helps.
    if before is None:
        path.unlink()
    else:
        path.write_bytes(before)
    home.ok("start")
    assert home.state(held) == "held"


def test_a_file_that_is_empty_counts_as_none(home: GrassHome) -> None:
    home.ok("stop")
    (home.folder / "worker-id").write_bytes(b"")
    home.ok("start")
