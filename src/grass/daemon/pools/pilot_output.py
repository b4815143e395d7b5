"""Reads the output of jobs whose pilots are gone.

A pilot writes the output of its jobs into a folder that it shares with its broker.
While its worker is connected, that is asked; afterwards the broker's daemon reads the
files itself. No path outside these folders is read or removed, whatever a worker said.
"""

from collections.abc import Sequence
from pathlib import Path

from grass.broker.shell.service import Broker
from grass.daemon.pools.pilot_folders import PilotFolders
from grass.link.messages import CloseOutput, OutputData, ReadOutput, RemoveOutput
from grass.worker.shell.output_ends import CreateTask
from grass.worker.shell.output_files import OutputFiles


class PilotOutput:
    """The files that pilots have left behind."""

    def __init__(
        self,
        broker: Broker,
        folders: PilotFolders,
        begin: CreateTask,
    ) -> None:
        """`begin` runs what reads."""
        self._broker = broker
        self._known = folders
        self._begin = begin
        self._files: dict[Path, OutputFiles] = {}
        self._streams: dict[int, OutputFiles] = {}

    def holds(self, paths: Sequence[str]) -> bool:
        """Return whether all these files were left by pilots."""
        return bool(paths) and all(self._folder(path) is not None for path in paths)

    def send(self, message: ReadOutput | CloseOutput) -> None:
        """Take a message as a worker does."""
        if isinstance(message, CloseOutput):
            files = self._streams.pop(message.stream, None)
            if files is not None:
                files.close_stream(message)
            return
        folder = self._folder(message.path or message.files[0])
        assert folder is not None
        self._streams[message.stream] = self._files_in(folder)
        self._streams[message.stream].read(message)

    def remove(self, paths: Sequence[str]) -> None:
        """Remove files that were left by pilots; others are none of ours."""
        for folder in {self._folder(path) for path in paths} - {None}:
            assert folder is not None
            own = [path for path in paths if self._folder(path) == folder]
            self._files_in(folder).remove(RemoveOutput(own))

    def close(self) -> None:
        """Stop reading."""
        for files in self._files.values():
            files.close()

    def _files_in(self, folder: Path) -> OutputFiles:
        files = self._files.get(folder)
        if files is None:
            files = OutputFiles(str(folder), self._answer, self._begin)
            self._files[folder] = files
        return files

    def _answer(self, message: object) -> None:
        if isinstance(message, OutputData):
            self._streams.pop(message.stream, None)
            self._broker.requests.output.delivered(message)

    def _folder(self, path: str) -> Path | None:
        folders = self._known.outputs()
        inside = [one for one in folders if Path(path).is_relative_to(one)]
        return None if ".." in path or not inside else max(inside)
