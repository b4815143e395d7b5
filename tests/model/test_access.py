"""Tokens as values: names, texts, hashes, time."""

import pytest

from grass.errors import UsageError
from grass.model.access import (
    LONGEST_NAME,
    Token,
    check_token_name,
    hash_of,
    split_token,
    token_name,
    token_text,
)


def test_a_text_is_split_where_it_was_put_together() -> None:
    assert split_token(token_text("lab-1", "sec.ret")) == ("lab-1", "sec.ret")
    assert split_token("nothing") == ("nothing", "")
    assert split_token("") == ("", "")


def test_a_hash_fits_its_secret_alone() -> None:
    token = Token("a", "read", hash_of("secret"), 0, "uid:1")
    assert token.fits(hash_of("secret"))
    assert not token.fits(hash_of("secret "))
    assert not token.fits(b"")
    assert b"secret" not in token.hash
    assert hash_of("caf\udce9") != hash_of("caf")


def test_time_runs_out_at_the_moment_it_was_set_to() -> None:
    token = Token("a", "read", b"", 0, "uid:1")
    assert token.holds(2**62)
    token.expires_at = 100
    assert token.holds(99)
    assert not token.holds(100)


@pytest.mark.parametrize("name", ["a", "lab-1", "A_b-9", "7", "x" * LONGEST_NAME])
def test_a_plain_name_is_taken(name: str) -> None:
    assert check_token_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "a.b", "-a", "_a", "a b", "a/b", "é", "a\n", "x" * (LONGEST_NAME + 1)]
)
def test_a_name_that_would_confuse_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot name a token"):
        check_token_name(name)


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        ("laptop", "laptop"),
        ("my.server.com", "my-server-com"),
        ("-x-", "x"),
        ("…", "machine"),
        ("", "machine"),
        ("y" * 300, "y" * LONGEST_NAME),
    ],
)
def test_every_machine_gets_a_name(machine: str, name: str) -> None:
    assert token_name(machine) == name
    check_token_name(token_name(machine))
