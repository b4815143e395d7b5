"""Specs and environments, stored once however many jobs share them.

Known only while an unfinished job or a view uses them: the tables count users, so that
a broker that has run for a year does not remember every environment it ever saw.
"""

import hashlib
import json
from collections.abc import Mapping

from grass.model.job import Spec
from grass.store.changes import Env
from grass.store.rows import json_text


class SpecTable:
    """Specs by number, and the number of each spec."""

    def __init__(self, last: int, known: Mapping[int, Spec]) -> None:
        """Start from what the store holds."""
        self._last = last
        self._by_number = dict(known)
        self._numbers = {spec: number for number, spec in known.items()}
        self._users = dict.fromkeys(known, 0)
        self.new: dict[int, Spec] = {}

    def __getitem__(self, number: int) -> Spec:
        """Return the spec of a job that is in use."""
        return self._by_number[number]

    def number(self, spec: Spec) -> int:
        """Return the spec's number, giving it one if it is new."""
        number = self._numbers.get(spec)
        if number is None:
            self._last = number = self._last + 1
            self._numbers[spec] = number
            self._by_number[number] = spec
            self._users[number] = 0
            self.new[number] = spec
        return number

    def restore(self, number: int, spec: Spec) -> None:
        """Know a spec again that the store has kept."""
        if number not in self._by_number:
            self._by_number[number] = spec
            self._numbers.setdefault(spec, number)
            self._users[number] = 0

    def use(self, number: int) -> None:
        """Count a job that needs this spec."""
        self._users[number] += 1

    def release(self, number: int) -> None:
        """Forget a spec with its last user."""
        self._users[number] -= 1
        if self._users[number] <= 0:
            self._drop(number)

    def base_envs(self) -> set[int]:
        """Give the environments that specs in use need."""
        specs = self._by_number.values()
        return {spec.base_env for spec in specs if spec.base_env is not None}

    def _drop(self, number: int) -> None:
        del self._users[number]
        spec = self._by_number.pop(number)
        if self._numbers.get(spec) == number:
            del self._numbers[spec]


class EnvTable:
    """Environments by number, one for each owner and content."""

    def __init__(self, last: int, known: list[Env]) -> None:
        """Start from what the store holds."""
        self._last = last
        self._bodies = {env.id: json.loads(env.body) for env in known}
        self._numbers = {_digest(env.owner, env.body): env.id for env in known}
        self._crowded_at = 256
        self.new: list[Env] = []

    @property
    def crowded(self) -> bool:
        """Tell whether it is time to look for environments that nobody uses."""
        return len(self._bodies) >= self._crowded_at

    def __getitem__(self, number: int) -> dict[str, str]:
        """Return an environment as it was at `enqueue`."""
        body: dict[str, str] = self._bodies[number]
        return body

    def number(self, owner: str, env: Mapping[str, str]) -> int:
        """Return the environment's number, giving it one if it is new."""
        body = json_text(dict(sorted(env.items())))
        digest = _digest(owner, body)
        number = self._numbers.get(digest)
        if number is None:
            self._last = number = self._last + 1
            self._numbers[digest] = number
            self._bodies[number] = dict(env)
            self.new.append(Env(number, owner, body))
        return number

    def restore(self, env: Env) -> None:
        """Know an environment again that the store has kept."""
        if env.id not in self._bodies:
            self._bodies[env.id] = json.loads(env.body)
            self._numbers.setdefault(_digest(env.owner, env.body), env.id)

    def keep_only(self, used: set[int]) -> None:
        """Forget environments that nobody uses any more."""
        self._bodies = {n: body for n, body in self._bodies.items() if n in used}
        self._numbers = {d: n for d, n in self._numbers.items() if n in used}
        self._crowded_at = max(256, 2 * len(self._bodies))


def _digest(owner: str, body: str) -> bytes:
    return hashlib.sha256(f"{owner}\0{body}".encode("utf-8", "surrogatepass")).digest()
