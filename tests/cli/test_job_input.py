"""The keys that detach from a job which has the terminal, among all others."""

import pytest

from grass.cli.commands.job_input import DetachKeys


@pytest.mark.parametrize(
    ("typed", "passed", "detached"),
    [
        (b"ls\r", b"ls\r", False),
        (b"~.", b"", True),
        (b"ls\r~.rest", b"ls\r", True),
        (b"ls\n~.", b"ls\n", True),
        (b"cd ~.\r", b"cd ~.\r", False),
        (b"\r~~.", b"\r~.", False),
        (b"\r~x", b"\r~x", False),
        (b"\r~\r~.", b"\r~\r", True),
        (b"\x1d\x03\x04", b"\x1d\x03\x04", False),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_tilde_and_dot_after_enter_detach(
    typed: bytes, passed: bytes, detached: bool, at_once: bool
) -> None:
    keys = DetachKeys()
    pieces = [typed] if at_once else [bytes((key,)) for key in typed]
    assert b"".join(map(keys.passed, pieces)) == passed
    assert keys.detached == detached
