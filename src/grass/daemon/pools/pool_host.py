"""What a daemon adds to pools: their engines, and the files that pilots begin with.

A pilot runs on another host, which sees a folder that the broker writes to: a home
directory that both share, or behind a prefix such as `ssh login1` that of the host
there. Its token lies in the folder in a file that only its owner can read, and is in no
script and no list of words.
"""

import asyncio
import contextlib
import glob
import sys
from pathlib import Path

from grass.api.context import TcpEndpoint
from grass.broker.shell.pools import PoolRunner, job_name
from grass.broker.shell.service import Broker
from grass.client.json_codec import encoded
from grass.client.private_files import replace_private
from grass.daemon.pools import pilot
from grass.daemon.pools.pilot_folders import PilotFolders, folder_of, output_folder
from grass.daemon.pools.pilot_process import BEGAN, ENDED, STOP
from grass.engines.command_engine import CommandEngine
from grass.engines.engine_commands import EngineCommands
from grass.engines.provider import PilotRequest, Provider
from grass.engines.ray_jobs import RayJobs
from grass.engines.slurm import Slurm
from grass.errors import CannotAsk, Refused
from grass.model.access import split_token
from grass.model.pools import MARK_DIGITS, Pool, PoolEnvironment
from grass.model.times import rfc3339

MOST_KEPT, MOST_SHOWN = 50, 10
"""Of how many pilots of a pool the output is kept, and of how many it is shown."""
LOG_BYTES = 4096
_WRITE = (
    'umask 077 && mkdir -p "$1" && cat > "$1/$2.new" && mv "$1/$2.new" "$1/$2"',
    "sh",
)
_REMOVE = ('rm -f "$1/$2" "$1/$2.stop"', "sh")
_STOP = (': > "$1/$2.stop"', "sh")
"""What the host behind a prefix does with the file of a pilot: folder and name."""


def pool_runner(
    broker: Broker, tcp: TcpEndpoint | None, folders: PilotFolders
) -> PoolRunner:
    """Return what asks the engines of a broker's pools.

    Another broker may have added these, so their folders are noted here, too.
    """
    for pool in broker.state.pools.pools.values():
        folders.note(pool)
    return PoolRunner(broker, provider_of, PilotFiles(broker, tcp, folders))


def provider_of(pool: Pool) -> Provider:
    """Return the engine of a pool."""
    commands = EngineCommands(pool.submit_prefix)
    if pool.engine == "slurm":
        return Slurm(commands, pool.omitted)
    if pool.engine == "ray":
        return RayJobs(pool.address, pool.token_file, pool.omitted)
    if pool.engine == "command" and pool.template is not None:
        return CommandEngine(commands, pool.template, str(folder_of(pool)))
    raise Refused(f"there is no engine `{pool.engine}`", "engines: slurm, ray, command")


class PilotFiles:
    """The folders that pilots share with their broker."""

    def __init__(
        self, broker: Broker, tcp: TcpEndpoint | None, folders: PilotFolders
    ) -> None:
        self._broker = broker
        self._tcp = tcp
        self._folders = folders

    def request(self, pool: Pool, mark: str) -> PilotRequest:
        """Return what the engine is asked for."""
        if self._tcp is None:
            raise Refused(
                "this broker lets no other machine in, so no pilot could reach it",
                "`grass restart --bind 0.0.0.0:7500`",
            )
        folder = folder_of(pool)
        return PilotRequest(
            mark=mark,
            name=job_name(pool),
            command=(*pool.worker_prefix, *_program(pool), str(folder / mark)),
            directory=str(folder),
            output=str(folder / f"{pool.name}.{mark}.out"),
            time_limit_s=pool.time_limit_s,
            cpus=pool.cpus,
            memory_mib=pool.memory_mib,
            gpus=pool.gpus,
            options=pool.options,
            setup=pool.setup,
            login=_needs_login(pool),
        )

    async def write_token(self, pool: Pool, mark: str, token: str) -> None:
        """Write how the pilot's worker reaches this broker."""
        text = self._told(pool, token)
        self._folders.note(pool)
        if pool.submit_prefix:
            await _run_there(pool, _WRITE, mark, text)
        else:
            await asyncio.to_thread(_write_here, folder_of(pool), mark, text)

    async def forget(self, pool: Pool, mark: str) -> None:
        """Remove the file of a pilot that is over."""
        if pool.submit_prefix:
            # The token counts no more, so a file that stays is of no use to anybody.
            with contextlib.suppress(CannotAsk):
                await _run_there(pool, _REMOVE, mark)
        else:
            await asyncio.to_thread(_forget_here, pool, mark)

    async def stop(self, pool: Pool, mark: str) -> None:
        """Tell a pilot to end itself."""
        if pool.submit_prefix:
            await _run_there(pool, _STOP, mark)
        else:
            await asyncio.to_thread((folder_of(pool) / f"{mark}{STOP}").touch)

    async def logs(self, pool: Pool) -> dict[str, str]:
        """Return the ends of what its pilots printed, the last ones last."""
        if pool.submit_prefix:
            raise Refused(
                "what its workers print is on the host that its commands run on",
                f"there in {folder_of(pool)}",
            )
        return await asyncio.to_thread(_logs_here, pool)

    def _addresses(self) -> list[str]:
        """Return where a pilot finds a broker, also if this one dies before."""
        assert self._tcp is not None
        lead = self._broker.lead
        return list(() if lead is None else lead.addresses()) or [self._tcp.address]

    def _told(self, pool: Pool, token: str) -> str:
        assert self._tcp is not None
        known = {
            "pin": self._tcp.pin,
            "token": token,
            "role": "worker",
            "name": split_token(token)[0],
            "addresses": self._addresses(),
            "cluster": self._broker.state.cluster,
            "joined_at": rfc3339(self._broker.now_us()),
        }
        lease = f"--lease={pool.lease_s:g}s"
        words = ["--no-broker", f"--label={pool.label}", "--on-disconnect=stop", lease]
        told = {
            "known": [known],
            "words": words,
            "cpus": pool.cpus,
            "memory_mib": pool.memory_mib,
            "gpus": pool.gpus,
            "notes": pool.template is not None and pool.template.status is None,
            "time_limit_s": pool.time_limit_s,
            # Its jobs have ended with its lease before, so it is idle.
            "away_limit_s": max(pool.idle_s, pool.lease_s),
            "output": str(output_folder(folder_of(pool)) / split_token(token)[0]),
        }
        return encoded(told).decode("ascii")


def _needs_login(pool: Pool) -> bool:
    """Tell whether its jobs or its shell lines use what a site's login sets."""
    is_site = pool.environment is PoolEnvironment.SITE
    return is_site or bool(pool.setup or pool.worker_prefix or pool.submit_prefix)


def _program(pool: Pool) -> tuple[str, ...]:
    """Return the program of a pilot, by its file where that is the broker's own."""
    if pool.python:
        return (pool.python, "-I", "-m", pilot.__name__)
    # It needs the standard library alone, and starts sooner without site-packages.
    return (sys.executable, "-I", "-S", pilot.__file__)


def _logs_here(pool: Pool) -> dict[str, str]:
    found = [_log_end(path) for path in _logs(pool)[-MOST_SHOWN:]]
    return dict(found)


def _logs(pool: Pool) -> list[Path]:
    """Return the files that pilots of a pool print into, the last one last."""
    # A name may have dots, and a mark has none: `a.*.out` would be those of `a.b`, too.
    pattern = f"{glob.escape(pool.name)}.{'[0-9a-f]' * MARK_DIGITS}.out"
    times = ((path.stat().st_mtime, path) for path in folder_of(pool).glob(pattern))
    return [path for _, path in sorted(times)]


def _log_end(path: Path) -> tuple[str, str]:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LOG_BYTES))
        text = file.read(LOG_BYTES).decode(errors="replace")
    return path.name.split(".")[-2], text


def _forget_here(pool: Pool, mark: str) -> None:
    """Remove the file of a pilot that is over, and what older ones printed."""
    _remove_here(folder_of(pool), mark)
    for path in _logs(pool)[:-MOST_KEPT]:
        path.unlink(missing_ok=True)


def _write_here(folder: Path, mark: str, text: str) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_private(str(folder / mark), text)


def _remove_here(folder: Path, mark: str) -> None:
    for end in ("", STOP, BEGAN, ENDED):
        (folder / f"{mark}{end}").unlink(missing_ok=True)


async def _run_there(
    pool: Pool, script: tuple[str, str], mark: str, text: str = ""
) -> None:
    commands = EngineCommands(pool.submit_prefix)
    words = ("sh", "-c", *script, str(folder_of(pool)), mark)
    answer = await commands.run(*words, script=text)
    if answer.code:
        raise CannotAsk(answer.words)
