"""Requests of every shape: an answer that says what is wrong, and all goes on."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.api.app import ENDPOINTS
from grass.errors import error_classes
from tests.fuzz.bodies import BODIES, PATHS
from tests.fuzz.dose import bounded, examples
from tests.fuzz.garbage import slipped, slipped_bytes, slipped_values, values
from tests.fuzz.serving import Served
from tests.support.calling import Answer

PROBLEM_CODES = set(error_classes()) - {"error", "storage", "invalid-transition"}
"""What a request may be answered with; the rest would be our mistake."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = Served(tmp_path_factory.mktemp("served"))
    jobs = {"jobs": [{"command": "true", "hold": True}] * 3}
    assert served.ask("POST", "/jobs", json.dumps(jobs).encode())
    yield served
    assert served.is_well()
    served.close()


def check(answer: Answer | None) -> None:
    """An answer is what was asked for, or a problem that is not ours."""
    if answer is None or answer.status == 200:
        return
    problem = answer.document
    assert problem["code"] in PROBLEM_CODES, problem
    assert 400 <= answer.status < 500 or problem["code"] in ("busy", "no-daemon")
    assert problem["detail"]


def test_every_route_with_a_body_is_tried() -> None:
    known = {f"{one.method} {one.path}" for one in ENDPOINTS if one.body is not None}
    tried = {
        name.replace("/queues/q", "/queues/{name}")
        .replace("/w/", "/{name}/")
        .replace("/1/", "/{id}/")
        for name in BODIES
    }
    assert tried == known


@pytest.mark.parametrize("route", BODIES)
def test_what_the_bodies_start_from_is_understood(served: Served, route: str) -> None:
    method, _, path = route.partition(" ")
    for body in BODIES[route]:
        answer = served.ask(method, path, json.dumps(body).encode())
        assert answer is None or b"not understood" not in answer.body


@pytest.mark.parametrize("route", BODIES)
@examples(25)
@given(data=st.data())
def test_a_body_is_taken_or_refused(
    served: Served, route: str, data: st.DataObject
) -> None:
    document = data.draw(st.one_of(slipped_values(BODIES[route]), values), "body")
    ask(served, route, document)


@examples(60)
@given(
    route=st.sampled_from(sorted(BODIES)),
    body=slipped_bytes([json.dumps(one[0]).encode() for one in BODIES.values()]),
)
def test_bytes_that_are_no_document_are_refused(
    served: Served, route: str, body: bytes
) -> None:
    method, _, path = route.partition(" ")
    with bounded(15):
        check(served.ask(method, path, body))


@examples(150)
@given(request=slipped(PATHS))
def test_a_path_leads_somewhere_or_is_refused(served: Served, request: str) -> None:
    method, _, path = request.encode("ascii", "replace").decode().partition(" ")
    with bounded(15):
        check(served.ask(method, "/" + path.lstrip("/"), b""))


@pytest.mark.parametrize("depth", [100, 1_000, 100_000])
@pytest.mark.parametrize("route", ["POST /jobs", "POST /capacity/add", "PUT /queues/q"])
def test_a_body_that_is_nested_too_deep_is_refused(
    served: Served, route: str, depth: int
) -> None:
    method, _, path = route.partition(" ")
    for opening, closing in (("[", "]"), ('{"capacity":', "}"), ('{"jobs":[', "]}")):
        for text in (opening * depth, opening * depth + "1" + closing * depth):
            with bounded(15):
                answer = served.ask(method, path, text.encode())
            assert answer is not None
            assert answer.document["code"] in ("usage", "too-large")


def ask(served: Served, route: str, document: Any) -> None:
    method, _, path = route.partition(" ")
    with bounded(15):
        check(served.ask(method, path, json.dumps(document).encode()))
