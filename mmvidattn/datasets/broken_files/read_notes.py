# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Record of the file that each worker reads, for a report after a crash."""
import os

import numpy as np
import torch
from torch.utils.data import get_worker_info

PID, NAME = 8, 4096


class ReadNotes:
    """Shared memory with the name of the file that each worker is reading.

    If a decoder crashes a worker, the main process can name the file.

    Args:
        num_workers: Number of workers of the data loader.
    """

    def __init__(self, num_workers: int) -> None:
        # The first row belongs to the main process.
        self._rows = torch.zeros(
            num_workers + 1, PID + NAME, dtype=torch.uint8).share_memory_()

    def write(self, name: str) -> None:
        """Record the file that this process reads now; '' for none."""
        worker = get_worker_info()
        row = self._rows[0 if worker is None else worker.id + 1].numpy()
        note = os.getpid().to_bytes(PID, 'little') + os.fsencode(
            name)[:NAME - 1] + b'\0'
        row[:len(note)] = np.frombuffer(note, np.uint8)

    def read(self, pid: int) -> str:
        """Return the file that a process was reading; '' for none."""
        for row in self._rows.numpy():
            if int.from_bytes(row[:PID].tobytes(), 'little') == pid:
                return os.fsdecode(row[PID:].tobytes().split(b'\0')[0])
        return ''
