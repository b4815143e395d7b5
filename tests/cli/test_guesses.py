"""Words that are no command, and what is suggested for them."""

import pytest

from grass.cli.main import ALIASES, COMMANDS
from grass.cli.parsing.guesses import GUESSES, suggestion

from .conftest import Call

KNOWN = {name: name for name in COMMANDS} | ALIASES


@pytest.mark.parametrize("word", ["ls", "ps", "status"])
def test_words_for_looking_do_what_show_does(word: str, call: Call) -> None:
    assert call(word, "--help").out == call("show", "--help").out
    assert call("help", word).out == call("show", "--help").out


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("kill", "cancel"),
        ("clean", "prune"),
        ("add", "enqueue"),
        ("log", "logs"),
        ("follow", "logs -f"),
        ("squeue", "show"),
        ("rm", "remove"),
        ("shwo", "show"),
        ("statu", "show"),
        ("enqeue", "enqueue"),
        ("xyzzy", None),
    ],
)
def test_the_right_command_is_suggested(word: str, meant: str | None) -> None:
    assert suggestion(word, KNOWN) == meant


@pytest.mark.parametrize(
    ("word", "meant"),
    [("sto", "stop"), ("stpo", "stop"), ("stopp", "stop"), ("cancle", "cancel")],
)
def test_a_slip_of_one_letter_is_told_of_any_command(word: str, meant: str) -> None:
    assert suggestion(word, KNOWN) == meant


@pytest.mark.parametrize(
    "word", ["top", "stop-job", "sttop2", "live", "moved", "prun3d"]
)
def test_other_words_lead_to_nothing_that_ends_or_forgets(word: str) -> None:
    harmful = {"cancel", "delete-queue", "leave", "prune", "remove", "stop"}
    assert suggestion(word, KNOWN) not in harmful


def test_every_guess_leads_to_a_command() -> None:
    assert {meant.split()[0] for meant in GUESSES.values()} <= COMMANDS.keys()
    assert not GUESSES.keys() & KNOWN.keys()
