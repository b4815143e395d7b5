"""Requests of the broker about files, input and measurements, and their answers.

They concern no state of the broker and go through no commit. Large answers are sent as
output is: after all other messages. Bytes of tasks go between these and all others.
"""

import msgspec

from grass.model.usage.attempt_usage import AttemptUsage
from grass.model.usage.gpu_use import GpuUse


class Message(msgspec.Struct, tag_field="type", omit_defaults=True):
    """Root of all messages; the field `type` has the tag.

    A default that is left out on the wire is filled in by the receiver, from its own
    version. So it is the zero of its type, which no version changes; a message with any
    other default sends all its fields.
    """


class LineScan(msgspec.Struct, omit_defaults=True):
    """What to look for in a part of a file, from a line's beginning on.

    A worker goes as far as it gets in a short time, and no further than to the last of
    `most` matches.
    """

    until: int
    """Where the part ends."""
    pattern: str = ""
    """An RE2 pattern, matched against each line; empty: lines are only counted."""
    most: int = 0
    """How many matches to tell; 0: they are only counted."""


class MatchedLine(msgspec.Struct, array_like=True):
    """A line that a pattern matches."""

    line: int
    """How many lines of the scanned part are before it."""
    offset: int
    """Where it begins in the file."""
    text: bytes
    """Its beginning."""


class ScannedLines(msgspec.Struct, omit_defaults=True):
    """What a worker found in a part of a file."""

    end: int
    """How far it got: where a line begins, or the end of the part or the file."""
    size: int
    """The size of the file."""
    newlines: int = 0
    marks: list[tuple[int, int]] = []
    """Beginnings of lines, the last one among them: lines before it, and its offset."""
    count: int = 0
    """How many lines match."""
    matches: list[MatchedLine] = []


class ReadOutput(Message, tag="read-output"):
    """Send a piece of an attempt's output file; `wait` for more at its end."""

    stream: int
    path: str
    offset: int
    length: int
    wait: bool = False
    scan: LineScan | None = None
    """What to look for instead; a worker of an older version sends the piece."""
    files: list[str] = []
    """Small files to send whole instead, each of up to `length` bytes."""


class OutputData(Message, tag="output-data"):
    """The answer to `ReadOutput`."""

    stream: int
    data: bytes
    missing: bool = False
    scanned: ScannedLines | None = None
    """The answer to its `scan`."""
    files: list[bytes | None] = []
    """The answer to its `files`; None: one is missing, or larger."""


class CloseOutput(Message, tag="close-output"):
    """The stream is no longer read."""

    stream: int


class RemoveOutput(Message, tag="remove-output"):
    """Delete the output of pruned attempts, within the worker's own folder."""

    paths: list[str]
    number: int = 0
    """Repeated by `Removed`."""


class Removed(Message, tag="removed"):
    """The answer to `RemoveOutput`: the files are removed, except for `left` files."""

    number: int
    left: int = 0
    reason: str = ""
    """Why a file could not be removed."""


class WriteInput(Message, tag="write-input"):
    """Give an attempt a piece of input; answered by `InputTaken`."""

    stream: int
    attempt: str
    sender: str
    """Who counts the offsets."""
    offset: int
    data: bytes = b""
    end: bool = False
    """Whether the attempt's stdin ends after it."""
    window: tuple[int, int] | None = None
    """Rows and columns that its terminal has from now on."""


class InputTaken(Message, tag="input-taken"):
    """The answer to `WriteInput`: up to which offset everything was taken."""

    stream: int
    offset: int
    closed: bool = False
    """Whether the attempt takes no more input, or has ended."""
    problem: str = ""
    """Why nothing could be given to it."""


TASK_PIECE = 64 * 1024
"""The most bytes of a `TaskBytes`: a heartbeat may have to wait for one."""
TASK_WINDOW = 1024 * 1024
"""How many bytes of a channel may be under way, each way, before some are taken."""


class TaskBytes(Message, tag="task-bytes"):
    """Bytes of a channel between a program and an attempt; for either side.

    Bytes of a channel arrive in order. A side sends no more than `TASK_WINDOW` bytes
    beyond those of which `TaskBytesTaken` has told.
    """

    channel: int
    data: bytes = b""
    attempt: str = ""
    """To a worker, in the first of a channel: the attempt to connect to."""
    end: bool = False
    """Whether the channel is over, both ways."""
    problem: str = ""
    """Why it is over, if neither the attempt nor the program ended it."""


class TaskBytesTaken(Message, tag="task-bytes-taken"):
    """How many more bytes of a channel its reader has taken."""

    channel: int
    size: int


class ReadBlob(Message, tag="read-blob"):
    """A worker asks for a piece of a blob; answered by `BlobData`."""

    number: int
    """Repeated by the answer."""
    name: str
    offset: int
    length: int


BLOB_PIECE = 256 * 1024
"""The most bytes of a `BlobData`: a heartbeat may have to wait for one."""


class BlobData(Message, tag="blob-data"):
    """The answer to `ReadBlob`, sent before output and after all else."""

    number: int
    data: bytes = b""
    size: int = 0
    """Of the whole blob."""
    missing: bool = False


class ReadDevices(Message, tag="read-devices"):
    """Tell how the devices are used now; older workers ignore it."""

    number: int
    """Repeated by `Devices`."""


class Devices(Message, tag="devices"):
    """The answer to `ReadDevices`; it is sent as output is, after all else."""

    number: int
    gpus: list[GpuUse] = []


class ReadUsage(Message, tag="read-usage"):
    """Send what these attempts use now; older workers ignore it."""

    number: int
    attempts: list[str]
    devices: bool = False
    """Whether the files with the histories of devices are named, too."""


class UsageData(Message, tag="usage-data"):
    """The answer to `ReadUsage`; attempts that were not measured are left out."""

    number: int
    attempts: dict[str, AttemptUsage]
    devices: dict[str, str] = msgspec.field(default_factory=dict)
    """The file with the history of each GPU."""
