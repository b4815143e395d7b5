"""Specs and environments, stored once however many jobs share them.

They are in memory only while they are used: the tables count users, so that a broker
that has run for a year does not keep every environment it ever had. A spec in the table
has a user from the first: an unfinished job, or a call that gives it to jobs in slices
and holds it until its last slice.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping

from grass.model.jobs.spec import Spec
from grass.store.bodies import json_text
from grass.store.changes import Env


class SpecTable:
    """Specs by number, and the number of each spec."""

    def __init__(self, last: int, known: Mapping[int, Spec]) -> None:
        self._last = last
        self._by_number = dict(known)
        self._numbers = {spec: number for number, spec in known.items()}
        self._users = dict.fromkeys(known, 0)
        self.new: dict[int, Spec] = {}
        self._env_users = Counter(spec.base_env for spec in known.values())

    def __contains__(self, number: int) -> bool:
        """Tell whether a spec is in use."""
        return number in self._by_number

    def __getitem__(self, number: int) -> Spec:
        """Return the spec of a job that is in use."""
        return self._by_number[number]

    def acquire(self, spec: Spec, count: int = 1) -> int:
        """Return the spec's number, new if the spec is, and count users of it."""
        number = self._numbers.get(spec)
        if number is None:
            self._last = number = self._last + 1
            self._numbers[spec] = number
            self._add(number, spec)
            self.new[number] = spec
        self.use(number, count)
        return number

    def restore(self, number: int, spec: Spec) -> None:
        """Count a user of a spec that the store has kept."""
        if number not in self._by_number:
            self._add(number, spec)
            self._numbers.setdefault(spec, number)
        self.use(number)

    def use(self, number: int, count: int = 1) -> None:
        """Count users of a spec that is in memory."""
        self._users[number] += count

    def release(self, number: int) -> None:
        """Forget a spec with its last user."""
        self._users[number] -= 1
        if self._users[number] <= 0:
            self._drop(number)

    def base_envs(self) -> set[int]:
        """Return the environments that specs in use need."""
        specs = self._by_number.values()
        return {spec.base_env for spec in specs if spec.base_env is not None}

    def needs_env(self, env: int) -> bool:
        """Tell whether a spec in use needs an environment."""
        return self._env_users[env] > 0

    def _add(self, number: int, spec: Spec) -> None:
        self._by_number[number] = spec
        self._users[number] = 0
        self._env_users[spec.base_env] += 1

    def _drop(self, number: int) -> None:
        del self._users[number]
        spec = self._by_number.pop(number)
        self._env_users[spec.base_env] -= 1
        if not self._env_users[spec.base_env]:
            del self._env_users[spec.base_env]
        if self._numbers.get(spec) == number:
            del self._numbers[spec]


class EnvTable:
    """Environments by number, one for each machine, owner and content."""

    def __init__(self, last: int, known: list[Env]) -> None:
        self._last = last
        self._bodies: dict[int, dict[str, str]] = {
            env.id: json.loads(env.body) for env in known
        }
        self._numbers = {_digest(env): env.id for env in known}
        self._digests = {number: digest for digest, number in self._numbers.items()}
        self._crowded_at = 256
        self.new: list[Env] = []

    @property
    def crowded(self) -> bool:
        """Tell whether it is time to look for unused environments."""
        return len(self._bodies) >= self._crowded_at

    def __contains__(self, number: int) -> bool:
        """Return whether an environment is in memory."""
        return number in self._bodies

    def get(self, number: int) -> dict[str, str] | None:
        """Return an environment as it was at `enqueue`; None: it was given up."""
        return self._bodies.get(number)

    def number(self, owner: str, env: Mapping[str, str], origin: str = "") -> int:
        """Return the environment's number, giving it one if it is new."""
        new = Env(self._last + 1, owner, json_text(dict(sorted(env.items()))), origin)
        digest = _digest(new)
        number = self._numbers.get(digest)
        if number is None:
            self._last = number = new.id
            self._numbers[digest] = number
            self._digests[number] = digest
            self._bodies[number] = dict(env)
            self.new.append(new)
        return number

    def restore(self, env: Env) -> None:
        """Know an environment again that the store has kept."""
        if env.id not in self._bodies:
            self._bodies[env.id] = json.loads(env.body)
            digest = _digest(env)
            if self._numbers.setdefault(digest, env.id) == env.id:
                self._digests[env.id] = digest

    def keep_only(self, used: set[int]) -> None:
        """Forget environments that are not in use."""
        self.forget(self._bodies.keys() - used)
        self._crowded_at = max(256, 2 * len(self._bodies))

    def forget(self, unused: Iterable[int]) -> None:
        """Forget these environments, which the store may forget as well."""
        for number in unused:
            self._bodies.pop(number, None)
            digest = self._digests.pop(number, None)
            if digest is not None:
                del self._numbers[digest]


def _digest(env: Env) -> bytes:
    text = f"{env.origin}\0{env.owner}\0{env.body}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
