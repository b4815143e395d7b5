"""A brokers' key that is always the same, for stores without a home."""


class FixedKey:
    """A key whose secret is known."""

    path = "broker.key"

    def __init__(self, secret: bytes | None = b"a key of tests") -> None:
        self.secret = secret

    def read(self) -> bytes | None:
        return self.secret

    def create(self) -> bytes:
        self.secret = b"a new key"
        return self.secret
