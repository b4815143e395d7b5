"""What a daemon adds to pools: their engines, and the files that pilots begin with.

A pilot runs on another host with the same home directory. Its token lies there in a
file that only its owner can read, and is in no script and no list of words.
"""

import contextlib
import os
import sys
from pathlib import Path

from grass.api.context import TcpEndpoint
from grass.broker.shell.pools import PoolRunner, job_name
from grass.broker.shell.service import Broker
from grass.client.json_codec import encoded
from grass.client.private_files import replace_private
from grass.daemon import pilot
from grass.engines.command_engine import CommandEngine
from grass.engines.engine_commands import EngineCommands
from grass.engines.provider import PilotRequest, Provider
from grass.engines.slurm import Slurm
from grass.errors import Refused
from grass.model.access import split_token
from grass.model.pools import Pool
from grass.model.times import rfc3339

PILOT_LEASE_S = 60.0
_FOLDER = "~/.cache/grass/pilots"


def pool_runner(broker: Broker, tcp: TcpEndpoint | None) -> PoolRunner:
    """Return what asks the engines of a broker's pools."""
    return PoolRunner(broker, provider_of, PilotFiles(broker, tcp))


def provider_of(pool: Pool) -> Provider:
    """Return the engine of a pool."""
    commands = EngineCommands(pool.submit_prefix)
    if pool.engine == "slurm":
        return Slurm(commands, pool.omitted)
    if pool.engine == "command" and pool.template is not None:
        return CommandEngine(commands, pool.template)
    raise Refused(f"there is no engine `{pool.engine}`", "engines: slurm, command")


class PilotFiles:
    """The folder that pilots share with their broker."""

    def __init__(self, broker: Broker, tcp: TcpEndpoint | None) -> None:
        self._broker = broker
        self._tcp = tcp

    def request(self, pool: Pool, mark: str) -> PilotRequest:
        """Return what the engine is asked for."""
        if self._tcp is None:
            raise Refused(
                "this broker lets no other machine in, so no pilot could reach it",
                "`grass restart --bind 0.0.0.0:7500`",
            )
        folder = _folder(pool)
        return PilotRequest(
            mark=mark,
            name=job_name(pool),
            command=(sys.executable, "-I", pilot.__file__, str(folder / mark)),
            directory=str(folder),
            output=str(folder / f"{mark}.out"),
            time_limit_s=pool.time_limit_s,
            cpus=pool.cpus,
            memory_mib=pool.memory_mib,
            gpus=pool.gpus,
            options=pool.options,
            setup=pool.setup,
        )

    def write_token(self, pool: Pool, mark: str, token: str) -> None:
        """Write how the pilot's worker reaches this broker."""
        assert self._tcp is not None
        known = {
            "pin": self._tcp.pin,
            "token": token,
            "role": "worker",
            "name": split_token(token)[0],
            "addresses": [self._tcp.address],
            "cluster": self._broker.state.cluster,
            "joined_at": rfc3339(self._broker.now_us()),
        }
        lease = f"--lease={PILOT_LEASE_S:g}s"
        words = ["--no-broker", f"--label={pool.label}", "--on-disconnect=stop", lease]
        told = {
            "known": [known],
            "words": words,
            "cpus": pool.cpus,
            "memory_mib": pool.memory_mib,
            "gpus": pool.gpus,
        }
        text = encoded(told).decode("ascii")
        replace_private(str(_folder(pool) / mark), text)

    def forget(self, pool: Pool, mark: str) -> None:
        """Remove the file of a pilot that is over."""
        with contextlib.suppress(FileNotFoundError):
            (_folder(pool) / mark).unlink()


def _folder(pool: Pool) -> Path:
    path = Path(pool.folder or os.path.expanduser(_FOLDER))
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path
