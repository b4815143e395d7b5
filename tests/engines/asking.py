"""What tests ask of an engine."""

import asyncio
import secrets
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from grass.engines.provider import PilotRequest, Provider
from grass.model.pools import PilotReport, PilotState
from tests.support.patience import until

T = TypeVar("T")

LONG = ("sleep", "600")


def do(asked: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asked)


def wanted(folder: Path, *command: str, gpus: int = 0) -> PilotRequest:
    mark = secrets.token_hex(8)
    return PilotRequest(
        mark=mark,
        name=f"grass-{mark}",
        command=command,
        directory=str(folder),
        output=str(folder / "output"),
        time_limit_s=300,
        gpus=gpus,
    )


def look(provider: Provider, request: PilotRequest) -> PilotReport:
    return do(provider.poll(request.name, [request.mark]))[request.mark]


def wait_for(
    provider: Provider, request: PilotRequest, state: PilotState
) -> PilotReport:
    return until(
        lambda: look(provider, request),
        f"the pilot is never {state}",
        lambda report: report.state is state,
    )
