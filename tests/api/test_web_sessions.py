"""One-time tokens and cookies: what is valid, for how long, and for whom."""

import msgspec
import pytest

from grass.api.access.web_sessions import (
    MOST_ONE_TIME,
    ONE_TIME_S,
    SESSION_S,
    Sessions,
    WebSession,
    principal_of,
    session_of_token,
    valid_token,
)
from grass.errors import Unauthorized
from grass.model.access import HASH_BYTES, Right, Token, hash_of

NOW = 1_800_000_000.0
KEY = b"k" * 32


def test_a_one_time_token_is_for_one_login() -> None:
    sessions = Sessions(KEY)
    text = sessions.new_one_time("uid:7", "read", NOW)
    found = sessions.redeem(text, NOW)
    until = int(NOW) + SESSION_S
    assert found == WebSession("uid:7", "read", until, id=found.id)
    with pytest.raises(Unauthorized, match="used already"):
        sessions.redeem(text, NOW)


def test_a_one_time_token_is_soon_too_old() -> None:
    sessions = Sessions(KEY)
    text = sessions.new_one_time("uid:7", "read", NOW)
    with pytest.raises(Unauthorized, match="too old"):
        sessions.redeem(text, NOW + ONE_TIME_S)
    with pytest.raises(Unauthorized):
        sessions.redeem(text, NOW)


def test_only_so_many_one_time_tokens_are_kept() -> None:
    sessions = Sessions(KEY)
    texts = [
        sessions.new_one_time("uid:7", "read", NOW) for _ in range(MOST_ONE_TIME + 1)
    ]
    with pytest.raises(Unauthorized):
        sessions.redeem(texts[0], NOW)
    for text in texts[1:]:
        sessions.redeem(text, NOW)


def test_a_cookie_holds_after_a_restart_until_its_time_is_over() -> None:
    session = WebSession("uid:7", "admin", int(NOW) + 10)
    value = Sessions(KEY).sealed(session)
    assert Sessions(KEY).opened(value, NOW) == session
    assert Sessions(KEY).opened(value, NOW + 10) is None
    assert Sessions(b"another").opened(value, NOW) is None


def test_a_session_that_was_ended_is_over_and_no_other() -> None:
    kept = dict[str, int]()
    sessions = Sessions(KEY, {"old": 1}, kept.update)
    links = [sessions.new_one_time("uid:7", "read", NOW) for _ in range(2)]
    one, other = (sessions.redeem(link, NOW) for link in links)
    sessions.end(one, NOW)
    for after in (sessions, Sessions(KEY, kept)):
        assert after.opened(sessions.sealed(one), NOW) is None
        assert after.opened(sessions.sealed(other), NOW) == other
    assert kept == {one.id: one.until}


def test_every_change_of_a_cookie_makes_it_invalid() -> None:
    value = Sessions(KEY).sealed(WebSession("uid:7", "read", 2**40))
    # The last letter has bits that mean nothing.
    for at in range(len(value) - 1):
        other = "A" if value[at] != "A" else "B"
        assert Sessions(KEY).opened(value[:at] + other + value[at + 1 :], NOW) is None


def test_two_daemons_have_cookies_of_two_names() -> None:
    assert Sessions(KEY).cookie != Sessions(b"another").cookie


def token(role: str = "operate", secret: str = "secret") -> Token:
    return Token("ada", role, hash_of(secret), 0, "uid:0")


def test_a_token_logs_in_with_its_role_and_never_as_a_machine() -> None:
    known = token("machine")
    session = session_of_token(" ada.secret\n", {"ada": known}, NOW)
    assert (session.actor, session.role) == ("token:ada", "machine")
    principal = principal_of(session, known)
    assert principal.rights == {Right.READ, Right.SUBMIT}
    assert principal.worker is None


WRONG = ["", "ada", "ada.", "ada.wrong", "eve.secret", ".secret", "code.secret"]


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_token_does_not_log_in(text: str) -> None:
    tokens = {"ada": token()}
    tokens["code"] = msgspec.structs.replace(token(), name="code", is_code=True)
    with pytest.raises(Unauthorized):
        session_of_token(text, tokens, NOW)


def test_a_token_that_may_not_read_does_not_log_in() -> None:
    with pytest.raises(Unauthorized, match="may not read"):
        session_of_token("ada.secret", {"ada": token("worker")}, NOW)


def test_a_session_ends_with_its_token() -> None:
    session = session_of_token("ada.secret", {"ada": token()}, NOW)
    assert valid_token(session, {"ada": token()}, NOW) is not None
    assert valid_token(session, {}, NOW) is None
    assert valid_token(session, {"ada": token(secret="new")}, NOW) is None
    ended = msgspec.structs.replace(token(), expires_at=int(NOW * 1e6))
    assert valid_token(session, {"ada": ended}, NOW) is None


def test_the_rights_of_a_session_are_those_of_its_token_now() -> None:
    session = session_of_token("ada.secret", {"ada": token()}, NOW)
    changed = token("read")
    assert principal_of(session, changed).rights == {Right.READ}
    assert principal_of(session, changed).role == "read"


def test_the_cookie_of_an_owner_is_no_token() -> None:
    owner = WebSession("uid:0", "admin", 2**40)
    nameless = Token("", "admin", bytes(HASH_BYTES), 0, "uid:0")
    assert valid_token(owner, {"": nameless}, NOW) is None
