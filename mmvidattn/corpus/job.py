# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Work of a command for each video of a long list."""
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .manifest import Item


@dataclass
class Job:
    """Work of a command for each video.

    Attributes:
        task: Name for the progress, such as 'Extracting'.
        make: Function without arguments that returns the function of an
            :class:`Item`, which returns a dict of results. Each process calls
            it once.
        columns: Names and Arrow types of these results.
        processes: Number of processes, or of Ray's actors.
        device: Device of each process.
        pool: Other arguments of :class:`WorkerPool`.
    """
    task: str
    make: Callable[[], Callable[[Item], dict[str, Any]]]
    columns: dict[str, str]
    processes: int = 1
    device: str = 'cpu'
    pool: dict[str, Any] = field(default_factory=dict)
