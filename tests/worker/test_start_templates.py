"""A start that is composed from one that is alike is the one that is composed anew."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.link.messages import Start
from grass.model.amount_text import WHOLE
from grass.model.jobs.sbatch import SbatchScript
from grass.model.jobs.task_call import TaskCall
from grass.worker.core.prepare import Surroundings, start_verb
from grass.worker.core.start_templates import StartTemplates

AROUND = Surroundings(
    "/out", "/home/me", "/bin/sh", {"PATH": "/bin"}, blob_folder="/blobs"
)
CALL = TaskCall("ab" * 32, "3.11", name="fit")
BASE = {"PATH": "/usr/bin", "GRASS_NAME": "stale"}


def start(job: int = 7, **fields: Any) -> Start:
    return Start(
        **{
            "attempt": f"{'a' * 16}.{job}.1",
            "job": job,
            "number": 1,
            "name": "fit",
            "project": "thesis",
            "words": ("true",),
            "shell": False,
            "allocation": {"cpu": {str(job % 2): WHOLE}},
            "base_env": BASE,
            "placed_at": 1000 + job,
            **fields,
        }
    )


FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "index": st.none() | st.integers(0, 3),
    "number": st.integers(1, 2),
    "name": st.sampled_from(["fit", "other"]),
    "words": st.sampled_from([("true",), ("echo", "{id}"), ("A=1", "env"), ()]),
    "allocation": st.sampled_from(
        [{"cpu": {"0": WHOLE}}, {"cpu": {"1": 2}, "ram": {"0": 5}}, {"gpu": {"0": 1}}]
    ),
    "env": st.sampled_from(
        [(), (("B", "1"),), (("B", "{id}"),), (("GRASS_CPU", "x"),)]
    ),
    "queue_env": st.sampled_from([(), (("B", "queue"),)]),
    "cwd": st.sampled_from([None, "/w", "/w/{attempt}"]),
    "stderr": st.sampled_from([None, "errors", "errors-{id}"]),
    "output": st.sampled_from([None, "out"]),
    "after": st.sampled_from([None, "x.1.1"]),
    "params": st.sampled_from([{}, {"lr": "1"}]),
    "pin": st.booleans(),
    "threads": st.sampled_from([None, 2]),
    "enforce": st.sampled_from([None, "cgroup"]),
    "task": st.sampled_from([None, CALL]),
    "array": st.sampled_from([None, 7]),
    "sbatch": st.sampled_from([None, SbatchScript(("array",), "/w")]),
    "arguments": st.sampled_from([b"", b"x"]),
    "arguments_blob": st.sampled_from(["", "cd" * 32]),
    "most_told": st.sampled_from([0, 100]),
    "guest": st.sampled_from([None, (5, 6)]),
    "raw": st.booleans(),
}
CHANGES = st.dictionaries(st.sampled_from(sorted(FIELDS)), st.none()).flatmap(
    lambda names: st.fixed_dictionaries({name: FIELDS[name] for name in names})
)


@given(st.lists(CHANGES, min_size=2, max_size=5), CHANGES)
def test_any_start_is_what_it_is_without_templates(
    changes: list[dict[str, Any]], common: dict[str, Any]
) -> None:
    templates = StartTemplates()
    for job, change in enumerate(changes, 5):
        for wanted in (start(job, **common), start(job, **{**common, **change})):
            assert templates.verb(wanted, AROUND) == start_verb(wanted, AROUND)


@pytest.mark.parametrize("task", [None, CALL])
def test_starts_that_are_alike_share_what_is_not_their_own(task: Any) -> None:
    templates = StartTemplates()
    first = templates.verb(start(1, task=task, index=1), AROUND)
    second = templates.verb(start(2, task=task, index=2), AROUND)
    assert second.argv is first.argv
    assert (second.env is first.env) == (task is not None)
