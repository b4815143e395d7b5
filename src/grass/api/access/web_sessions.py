"""Sessions of browsers: one-time tokens, and the signed cookies they become.

A one-time token is for one login within a few minutes. It is exchanged for a cookie,
which says who the browser acts for and until when, signed with a key of the state
directory: it is valid after a restart of the daemon, and none is once the key is
replaced. A cookie of a token's login names the token, which is looked up for each
request, so a revoked token ends its sessions. Of sessions that were ended by a logout
the ids are kept until their cookies are too old.

No session has the right to work: a browser is no machine.
"""

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping

import msgspec

from grass.api.access.auth import Principal
from grass.errors import Unauthorized
from grass.model.access import Right, Token, actor_of, hash_of, rights_of, split_token

ONE_TIME_S = 300
"""How long a one-time token is valid."""
SESSION_S = 30 * 86_400
"""How long a cookie is valid."""
MOST_ONE_TIME = 64
"""One-time tokens that are valid at a time; the oldest are dropped."""
KEY_BYTES, ID_BYTES = 32, 12

LOG_IN = "run `grass web` again: it prints a new link"


class WebSession(msgspec.Struct, frozen=True):
    """Who a browser acts for."""

    actor: str
    role: str
    until: int
    """In seconds since 1970."""
    token: str = ""
    """The name of the token that logged in; empty: the owner of the daemon."""
    shown: str = ""
    """The hash of that token's secret, in hexadecimal digits."""
    id: str = ""
    """Two logins of the same second are two sessions."""


class Sessions:
    """Makes and checks one-time tokens and cookies, with one key."""

    def __init__(
        self,
        key: bytes,
        ended: Mapping[str, int] | None = None,
        keep_ended: Callable[[dict[str, int]], None] = lambda _: None,
    ) -> None:
        """Prepare; `ended` has the ids of ended sessions, with their `until`."""
        self._key = key
        self._ended = dict(ended or {})
        self._keep_ended = keep_ended
        # Cookies are those of a host, not of a port: two daemons need two names.
        self.cookie = f"grass-{self._signature(b'name')[:8].hex()}"
        """The name of the cookie."""
        self._one_time: dict[bytes, WebSession] = {}
        """By the hash of the token, the oldest first; valid until its `until`."""

    def new_one_time(self, actor: str, role: str, now_s: float) -> str:
        """Return a token with which one browser can log in."""
        text = secrets.token_urlsafe(KEY_BYTES)
        self._one_time[hash_of(text)] = WebSession(actor, role, int(now_s) + ONE_TIME_S)
        while len(self._one_time) > MOST_ONE_TIME:
            del self._one_time[next(iter(self._one_time))]
        return text

    def redeem(self, text: str, now_s: float) -> WebSession:
        """Exchange a one-time token for a session, once."""
        found = self._one_time.pop(hash_of(text), None)
        if found is None or found.until <= now_s:
            raise Unauthorized("this link was used already, or is too old", LOG_IN)
        return WebSession(found.actor, found.role, int(now_s) + SESSION_S, id=_new_id())

    def sealed(self, session: WebSession) -> str:
        """Return the value of a session's cookie."""
        content = msgspec.json.encode(session)
        return f"{_text(content)}.{_text(self._signature(content))}"

    def opened(self, value: str, now_s: float) -> WebSession | None:
        """Return the session of a cookie; None: it is not valid."""
        content_text, _, signature_text = value.partition(".")
        try:
            content, signature = _bytes(content_text), _bytes(signature_text)
        except ValueError:
            return None
        if not hmac.compare_digest(signature, self._signature(content)):
            return None
        session = msgspec.json.decode(content, type=WebSession)
        is_over = now_s >= session.until or session.id in self._ended
        return None if is_over else session

    def end(self, session: WebSession, now_s: float) -> None:
        """Let no cookie of a session be valid any more."""
        recent = {id: until for id, until in self._ended.items() if until > now_s}
        self._ended = {**recent, session.id: session.until}
        self._keep_ended(self._ended)

    def _signature(self, content: bytes) -> bytes:
        return hmac.digest(self._key, content, hashlib.sha256)


def session_of_token(
    text: str, tokens: Mapping[str, Token], now_s: float
) -> WebSession:
    """Return the session of a token's text, or raise."""
    name, secret = split_token(text.strip())
    until, shown = int(now_s) + SESSION_S, hash_of(secret).hex()
    session = WebSession(actor_of(name), "", until, name, shown, _new_id())
    token = valid_token(session, tokens, now_s)
    if token is None or Right.READ not in rights_of(token.role):
        raise Unauthorized(
            "this token is unknown here, was revoked, or may not read",
            "`grass token new --login` at the broker prints one",
        )
    return msgspec.structs.replace(session, role=token.role)


def valid_token(
    session: WebSession, tokens: Mapping[str, Token], now_s: float
) -> Token | None:
    """Return the token of a session as it is now; None: it is not valid any more."""
    token = tokens.get(session.token, _UNKNOWN)
    is_good = token.admits(bytes.fromhex(session.shown), int(now_s * 1_000_000))
    return token if is_good and token is not _UNKNOWN else None


def principal_of(session: WebSession, token: Token | None) -> Principal:
    """Return the caller that a session stands for, with the token's present rights."""
    role = session.role if token is None else token.role
    rights = rights_of(role) - {Right.WORK}
    return Principal(session.actor, rights, role=role, token=session.token)


_UNKNOWN = Token("", "", bytes(32), 0, "")


def _new_id() -> str:
    return secrets.token_urlsafe(ID_BYTES)


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
