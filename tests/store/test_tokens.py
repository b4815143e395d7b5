"""Tokens in any store: kept whole, replaced, removed, and never with their secret."""

from collections.abc import Callable

from grass.model.access import Token, hash_of
from grass.store.changes import Changes
from grass.store.interface import Store

Reopen = Callable[[], Store]


def a_token(name: str, created_at: int = 5, **fields: object) -> Token:
    made = Token(name, "machine", hash_of(name), created_at, "uid:1000")
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def save(store: Store, *tokens: Token) -> None:
    store.commit(Changes(tokens={one.name: one for one in tokens}))


def test_a_new_store_has_no_tokens(store: Store) -> None:
    assert store.load(0).tokens == []


def test_tokens_are_read_alone_as_with_all_else(store: Store) -> None:
    later, first = a_token("a", created_at=2), a_token("b", created_at=1)
    save(store, later, first)
    assert store.tokens() == store.load(0).tokens == [first, later]


def test_tokens_read_back_as_they_were_committed(reopen: Reopen) -> None:
    whole = a_token("laptop", worker="w1", used_at=7, expires_at=2**62)
    code = a_token("code", created_at=4, is_code=True, expires_at=9)
    bare = a_token("bare", created_at=6)
    save(reopen(), whole, code, bare)
    assert reopen().load(0).tokens == [code, whole, bare]


def test_a_token_is_replaced_by_its_name(store: Store) -> None:
    save(store, a_token("laptop"))
    later = a_token("laptop", role="read", worker="w2", used_at=8)
    later.hash = hash_of("another")
    save(store, later)
    assert store.load(0).tokens == [later]


def test_what_is_kept_does_not_change_with_the_value(store: Store) -> None:
    token = a_token("laptop")
    save(store, token)
    token.worker = "w9"
    assert store.load(0).tokens == [a_token("laptop")]


def test_a_removed_token_is_gone(reopen: Reopen) -> None:
    store = reopen()
    save(store, a_token("a"), a_token("b"))
    store.commit(Changes(removed_tokens=["a", "never"]))
    assert [one.name for one in reopen().load(0).tokens] == ["b"]


def test_a_token_removed_and_made_anew_in_one_batch_is_there(store: Store) -> None:
    save(store, a_token("laptop"))
    new = a_token("laptop", created_at=6)
    store.commit(Changes(removed_tokens=["laptop"], tokens={"laptop": new}))
    assert store.load(0).tokens == [new]
