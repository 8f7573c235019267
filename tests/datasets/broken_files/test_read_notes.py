# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import os
import signal

import pytest
from torch.utils.data import DataLoader, Dataset

from mmvidattn.datasets.broken_files.read_notes import NAME, ReadNotes


class Dying(Dataset):
    """Dataset whose second sample kills the worker."""

    def __init__(self, notes):
        self.notes = notes

    def __len__(self):
        return 4

    def __getitem__(self, index):
        self.notes.write(f'{index}.mp4')
        if index == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        self.notes.write('')
        return index


def test_note_survives_its_process():
    notes = ReadNotes(2)
    notes.write('mine.mp4')
    batches = iter(DataLoader(Dying(notes), num_workers=2))
    pids = [worker.pid for worker in batches._workers]
    with pytest.raises(RuntimeError, match='DataLoader worker'):
        list(batches)
    assert notes.read(pids[1]) == '1.mp4'
    assert notes.read(os.getpid()) == 'mine.mp4'
    assert notes.read(1) == ''
    batches._shutdown_workers()


@pytest.mark.parametrize('name, want', [
    ('shorter', 'shorter'), ('', ''), ('\u4e2d \udcff', '\u4e2d \udcff'),
    ('x' * 9999, 'x' * (NAME - 1))], ids=lambda name: name[:9])
def test_records_any_name(name, want):
    notes = ReadNotes(0)
    notes.write('a longer name than the next one')
    notes.write(name)
    assert notes.read(os.getpid()) == want
