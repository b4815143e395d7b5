"""Where devices are: how near to each other, and to which cores and memory."""

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

import pynvml

from grass.devices.gpu_reports import DevicePair, DevicePlaces
from grass.devices.readings import GpuSide, Nearness

_LEVELS: tuple[tuple[int, Nearness], ...] = (
    (pynvml.NVML_TOPOLOGY_INTERNAL, "same board"),
    (pynvml.NVML_TOPOLOGY_MULTIPLE, "same switch"),
    (pynvml.NVML_TOPOLOGY_NODE, "same cpu"),
)
"""Levels of the common ancestor up to which two devices are so near."""
_WORD_BITS = 64
_MOST_NODES = 64


def places_of(devices: Sequence[tuple[str, Any]]) -> DevicePlaces:
    """Tell where devices are, each given by uuid and handle."""
    pairs = (
        DevicePair(one, other, _nearness(first, second))
        for (one, first), (other, second) in combinations(devices, 2)
    )
    return DevicePlaces(tuple(pairs), {uuid: _side(one) for uuid, one in devices})


def _nearness(one: Any, other: Any) -> Nearness:
    index = pynvml.NVML_P2P_CAPS_INDEX_NVLINK
    link = _asked(lambda: pynvml.nvmlDeviceGetP2PStatus(one, other, index))
    if link == pynvml.NVML_P2P_STATUS_OK:
        return "nvlink"
    level = _asked(lambda: pynvml.nvmlDeviceGetTopologyCommonAncestor(one, other))
    if level is not None:
        for most, nearness in _LEVELS:
            if level <= most:
                return nearness
    return "far"


def _side(device: Any) -> GpuSide:
    words = (os.cpu_count() or 1) // _WORD_BITS + 1
    cores = _asked(lambda: pynvml.nvmlDeviceGetCpuAffinity(device, words))
    scope = pynvml.NVML_AFFINITY_SCOPE_NODE
    nodes = _asked(
        lambda: pynvml.nvmlDeviceGetMemoryAffinity(
            device, _MOST_NODES // _WORD_BITS, scope
        )
    )
    return GpuSide(next(_bits(nodes or ()), None), tuple(_bits(cores or ())))


def _bits(words: Sequence[int]) -> Iterator[int]:
    for place, word in enumerate(words):
        for bit in range(_WORD_BITS):
            if word >> bit & 1:
                yield place * _WORD_BITS + bit


def _asked(question: Callable[[], Any]) -> Any:
    try:
        return question()
    except pynvml.NVMLError:
        return None
