"""Keepers that are killed, and those that come after them."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from .conversation import Daemon, Entry, kill_and_await

Make = Callable[..., Daemon]


def kernel_tells_exit_codes() -> bool:
    major, minor = os.uname().release.split(".")[:2]
    return (int(major), int("".join(c for c in minor if c.isdigit()))) >= (6, 15)


tells = pytest.mark.skipif(
    not kernel_tells_exit_codes(), reason="this kernel does not tell exit codes"
)


def replaced(daemon: Daemon, make_daemon: Make) -> Daemon:
    kill_and_await(daemon.keeper)
    successor = make_daemon()
    assert successor.keeper != daemon.keeper
    return successor


def state_of(daemon: Daemon, id: str) -> Entry:
    return next(each for each in daemon.hello["attempts"] if each["id"] == id)


def exit_of(daemon: Daemon, id: str) -> Entry:
    state = state_of(daemon, id)
    return state if state["state"] == "exited" else daemon.expect("exited", id)
