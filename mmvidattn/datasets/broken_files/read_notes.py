# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Notes of the files that are being read, which outlive their reader."""
import os

import numpy as np
import torch
from torch.utils.data import get_worker_info

PID, NAME = 8, 4096


class ReadNotes:
    """The file that each worker of a loader reads, in memory that they share.

    A decoder may crash its process; another one then still finds the note.

    Args:
        num_workers: Workers of the loader.
    """

    def __init__(self, num_workers: int) -> None:
        # The first row is the main process's.
        self._rows = torch.zeros(
            num_workers + 1, PID + NAME, dtype=torch.uint8).share_memory_()

    def write(self, name: str) -> None:
        """Note the file that this process reads now; '' if none."""
        worker = get_worker_info()
        row = self._rows[0 if worker is None else worker.id + 1].numpy()
        note = os.getpid().to_bytes(PID, 'little') + os.fsencode(
            name)[:NAME - 1] + b'\0'
        row[:len(note)] = np.frombuffer(note, np.uint8)

    def read(self, pid: int) -> str:
        """Return the file that a process was reading; '' if none."""
        for row in self._rows.numpy():
            if int.from_bytes(row[:PID].tobytes(), 'little') == pid:
                return os.fsdecode(row[PID:].tobytes().split(b'\0')[0])
        return ''
