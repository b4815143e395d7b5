"""Nothing is left of machines, also where one of them does not end."""

from pathlib import Path

import pytest

from tests.support.homes import GrassHome
from tests.support.machines import machines


def test_one_that_does_not_end_keeps_no_other_from_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []

    def end(home: GrassHome) -> None:
        ended.append(home.folder.parent.name)
        assert ended[-1] != "second", "it lives on"

    def use_three() -> None:
        with machines(tmp_path) as make:
            for name in ("first", "second", "third"):
                make(name)

    monkeypatch.setattr(GrassHome, "end", end)
    with pytest.raises(AssertionError, match="it lives on"):
        use_three()
    assert ended == ["third", "second", "first"]
