# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
import pytest

from mmvidattn.datasets.broken_files import find_fault as module
from mmvidattn.datasets.broken_files.find_fault import CHUNK, find_fault


class Reader:
    """Reader that claims ``length`` frames and can decode ``whole``."""

    def __init__(self, length, whole):
        self.length, self.whole, self.asked = length, whole, []

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        self.asked.append(index)

    def get_batch(self, indices):
        self.asked += indices
        return np.zeros([sum(i < self.whole for i in indices), 2, 2, 3])


@pytest.fixture
def look(monkeypatch, tmp_path):

    def look(reader, **kwargs):
        monkeypatch.setattr(module, 'open_video', lambda *args: reader)
        path = tmp_path / 'video.avi'
        path.write_bytes(b'not a container')
        return find_fault(str(path), **kwargs)

    return look


def test_decodes_every_frame_or_only_the_last(look):
    length = 2 * CHUNK + 1
    reader = Reader(length, length)
    assert look(reader, every_frame=True) is None
    assert reader.asked == [*range(length), length - 1]
    reader = Reader(length, length)
    assert look(reader) is None
    assert reader.asked == [length - 1]


def test_reports_the_number_of_readable_frames(look):
    fault = look(Reader(CHUNK + 9, CHUNK + 5), every_frame=True)
    assert f'{CHUNK + 5} of {CHUNK + 9}' in str(fault)
    assert str(look(Reader(0, 0))) == 'it contains no frames'


def test_reports_a_missing_file(tmp_path):
    assert isinstance(find_fault(str(tmp_path / 'video.mp4')),
                      FileNotFoundError)
