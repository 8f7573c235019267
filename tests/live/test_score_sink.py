# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from types import SimpleNamespace

import numpy as np

from mmvidattn.live import Detection
from mmvidattn.live.file_sinks import ScoreSink
from mmvidattn.online.frame_scores import read_frame_scores


def run_of(name, classes=('background', 'jump')):
    return SimpleNamespace(source=SimpleNamespace(name=name), rate=4.,
                           classes=list(classes), ignore={0})


def write(folder, name, steps):
    sink = ScoreSink(folder, run_of(name))
    for step in steps:
        scores = np.array([1 - step / 8, step / 8], np.float32)
        sink.write(Detection(step, (step + 1) / 4, scores, np.zeros((0, 2)),
                             [], (), {}))
    sink.close()


def test_sources_share_a_folder_and_missing_steps_are_filled(tmp_path):
    write(tmp_path / 'x', 'a.mp4', [0, 1, 2])
    write(tmp_path / 'x', 'b.mp4', [2, 3, 6])
    write(tmp_path / 'x', 'empty.mp4', [])
    found = read_frame_scores(tmp_path / 'x')
    assert {name: (each.scores[:, 1] * 8).tolist()
            for name, each in found.videos.items()} == {
                'a.mp4': [0, 1, 2], 'b.mp4': [2, 2, 2, 3, 3, 3, 6]}
    write(tmp_path / 'x', 'a.mp4', [5])
    assert read_frame_scores(tmp_path / 'x').videos['a.mp4'].scores.shape == (
        6, 2)
