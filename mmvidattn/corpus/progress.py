# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Progress, throughput and faults of a run while it works."""
import time

from rich.console import Console
from rich.progress import Progress, TextColumn

from ..utils.printable import printable


class Meter:
    """Progress of a run: a bar in a terminal, otherwise a line every 30 s.

    Args:
        task: Name of the work, such as 'Extracting'.
        total: Number of items.
        interval: Seconds between two lines. Defaults to 30.
    """

    def __init__(self, task: str, total: int, interval: float = 30.) -> None:
        self.task = task
        self.total = total
        self.interval = interval
        # Items of all processes, and of this one.
        self.done = self.own = self.failed = 0
        self._console = Console(stderr=True)
        self._bar = Progress(
            *Progress.get_default_columns(), TextColumn('{task.fields[rate]}'),
            console=self._console, disable=not self._console.is_terminal)
        self._task = self._bar.add_task(task, total=total, rate='')

    def __enter__(self) -> 'Meter':
        self._began = time.monotonic()
        self._next = self._began + self.interval
        self._bar.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._bar.stop()

    @property
    def rate(self) -> float:
        """Items per second of this process."""
        return self.own / max(time.monotonic() - self._began, 1e-9)

    def add(self, source: str, fault: str) -> None:
        """Count an item of this process, and print its fault, if any."""
        self.count(1, bool(fault))
        if fault:
            self._console.print(printable(f'{source}: {fault}'), markup=False,
                                highlight=False, soft_wrap=True)

    def count(self, own: int, failed: int) -> None:
        """Count items of this process."""
        self.own += own
        self.done += own
        self.failed += failed

    def show(self) -> None:
        """Update the bar, or print a line if it is time."""
        rate = f'{self.rate:.3g}/s, {self.failed} failed'
        self._bar.update(self._task, completed=self.done, rate=rate)
        if self._bar.disable and time.monotonic() >= self._next:
            self._next += self.interval
            self._console.print(
                f'{self.task}: {self.done} of {self.total}, {rate}',
                highlight=False)
