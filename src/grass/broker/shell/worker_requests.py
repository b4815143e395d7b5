"""What is asked of workers for people who look, and for blobs and task hosts.

These messages change no state: the answer of a worker goes to whoever has asked, and to
nobody once its link has ended.
"""

from typing import Any

from grass.broker.shell.device_requests import DeviceRequests
from grass.broker.shell.input_streams import InputStreams
from grass.broker.shell.kept_blobs import KeptBlobs
from grass.broker.shell.links import LinkOf
from grass.broker.shell.output_streams import OutputStreams
from grass.broker.shell.task_channels import TaskChannels
from grass.broker.shell.usage_requests import UsageRequests
from grass.link.messages import (
    Devices,
    InputTaken,
    OutputData,
    ReadBlob,
    TaskBytes,
    TaskBytesTaken,
    ToBroker,
    UsageData,
)


class WorkerRequests:
    """The requests to workers that are under way, by their subject."""

    def __init__(self, link_of: LinkOf, blobs: KeptBlobs) -> None:
        self.output = OutputStreams(link_of)
        self.input = InputStreams(link_of)
        self.channels = TaskChannels(link_of)
        self.devices = DeviceRequests(link_of)
        self.usage = UsageRequests(link_of)
        self._receivers: dict[type, Any] = {
            OutputData: self.output,
            InputTaken: self.input,
            TaskBytes: self.channels,
            TaskBytesTaken: self.channels,
            ReadBlob: blobs,
            Devices: self.devices,
            UsageData: self.usage,
        }

    def received(self, worker: str, message: ToBroker) -> bool:
        """Pass an answer on to who has asked; return whether the message is one."""
        receiver = self._receivers.get(type(message))
        if receiver is None:
            return False
        receiver.received(worker, message)
        return True

    def gone(self, worker: str) -> None:
        """Answer what was asked of a worker over a link that is not used any more."""
        for receiver in self._receivers.values():
            receiver.gone(worker)
