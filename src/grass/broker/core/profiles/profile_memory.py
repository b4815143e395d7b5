"""The profiles in the broker's memory: all of them, by job type and model of GPU."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from grass.broker.core.profiles.prediction import Prediction, predicted
from grass.model.amounts import LARGEST
from grass.model.usage.profiles import MOST_SAMPLES, MeasuredRun, Profile

ENOUGH_FAILURES = 2
"""After this many in a row jobs no longer wait for a profile of the type."""
WHOLE_DEVICE = LARGEST
"""The amount of a type that could not be measured: a GPU each, without waiting."""

ProfileKey = tuple[str, str]


class Profiles:
    """What is known of each job type on each model of GPU."""

    def __init__(self, known: Iterable[Profile] = ()) -> None:
        self._by_type: dict[str, dict[str, Profile]] = {}
        for profile in known:
            self.put(profile)

    def __iter__(self) -> Iterator[Profile]:
        """Give all, in the order of types and models."""
        for job_type in sorted(self._by_type):
            yield from (one for _, one in sorted(self._by_type[job_type].items()))

    def types(self) -> list[str]:
        """Return the types of which something is known."""
        return list(self._by_type)

    def of(self, job_type: str) -> dict[str, Profile]:
        """Return the profiles of a type, by model."""
        return self._by_type.get(job_type, {})

    def put(self, profile: Profile) -> None:
        """Replace what is known of a type on one model."""
        self._by_type.setdefault(profile.job_type, {})[profile.model] = profile

    def remove(self, job_type: str) -> list[ProfileKey]:
        """Forget a type; return the keys of its profiles."""
        return [(job_type, model) for model in self._by_type.pop(job_type, {})]

    def with_sample(self, job_type: str, model: str, sample: MeasuredRun) -> Profile:
        """Return a profile with one more sample, which replaces that of its job."""
        known = self.of(job_type).get(model) or Profile(job_type, model)
        others = [one for one in known.samples if not _is_replaced(one, sample)]
        runs = known.runs + (len(others) == len(known.samples))
        samples = [*others, sample][-MOST_SAMPLES:]
        return replace(known, samples=samples, runs=runs)

    def amounts(self, job_type: str) -> dict[str, int]:
        """Return what an attempt of a type is given of each model that is known."""
        found = {model: given(one) for model, one in self.of(job_type).items()}
        return {model: amount for model, amount in found.items() if amount is not None}


def given(profile: Profile) -> int | None:
    """Return the vram that the next attempt is given; None: it is measured first."""
    found = predicted(profile.samples)
    if found is not None:
        return found.amount
    return WHOLE_DEVICE if profile.failures >= ENOUGH_FAILURES else None


def reasoned(profile: Profile) -> Prediction | str:
    """Return what the next attempt is given and why, or why nothing is known."""
    found = predicted(profile.samples)
    if found is not None:
        return found
    if profile.failures >= ENOUGH_FAILURES:
        return "no attempt could be measured: each has a GPU alone, until one succeeds"
    return "an attempt ended before it was measured: the next is measured, alone"


def _is_replaced(one: MeasuredRun, later: MeasuredRun) -> bool:
    return one.job == later.job and one.end == "running"
