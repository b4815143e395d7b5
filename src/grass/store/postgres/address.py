"""Where a PostgreSQL database is. Its URL has no password, so it may be shown."""

import re
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from grass.errors import NoDatabase, UsageError
from grass.setting_values import check_store, password_given

SCHEMES = ("postgresql://", "postgres://")
_HINT = (
    "write it as postgresql://USER@HOST:PORT/NAME, and keep the password in ~/.pgpass"
)
_SECRETS = ("password", "passfile", "sslpassword", "sslkey")


class DatabaseAddress(NamedTuple):
    """The URL of a database, and its parts that may be shown."""

    url: str
    shown: str


def is_address(text: str) -> bool:
    """Tell whether a text is meant as the URL of a database."""
    return text.startswith(SCHEMES)


def address_of(url: str) -> DatabaseAddress:
    """Read a URL; one that cannot be used is an error that does not repeat it."""
    from psycopg import Error
    from psycopg.conninfo import conninfo_to_dict

    if not is_address(url):
        raise NoDatabase("the store's URL is not one of a PostgreSQL database", _HINT)
    try:
        check_store(url)
        parts = conninfo_to_dict(url)
        split = urlsplit(url)
        if parts.get("password"):
            raise password_given()
    except UsageError as error:
        raise NoDatabase(error.message, error.hint) from None
    except (Error, ValueError):
        raise NoDatabase("the store's URL cannot be read", _HINT) from None
    place = split.netloc.rpartition("@")[2]
    user = str(parts.get("user") or "")
    shown = f"{SCHEMES[0]}{quote(user) + '@' if user else ''}{place}{split.path}"
    return DatabaseAddress(url, shown + _shown_query(split.query))


def _shown_query(query: str) -> str:
    pairs = (pair for pair in re.split("[&]", query) if pair)
    kept = [pair for pair in pairs if not pair.startswith(_SECRETS)]
    return f"?{'&'.join(kept)}" if kept else ""
