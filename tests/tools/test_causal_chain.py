# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""From generated videos to events, as in docs/causal.md."""
import json
from pathlib import Path

import decord
import numpy as np
import pytest
import torch

import mmvidattn
from mmvidattn.live import EventDetector
from tools.data.online.make_pixels import FPS

pytestmark = pytest.mark.slow
CONFIG = 'linear_ff_causal_tiny_synthetic'


@torch.no_grad()
def scores_of(model, video):
    """Score all frames of a file in one pass, ``(T, K)``."""
    reader = decord.VideoReader(str(video))
    frames = torch.from_numpy(reader.get_batch(range(len(reader))).asnumpy())
    frames = model.data_preprocessor.normalize(frames.permute(3, 0, 1, 2))
    x, _ = model.backbone.forward_causal(dict(frames=frames[None]))
    return model.cls_head(x)['action'].softmax(-1)[0].numpy()


def results_of(work_dir):
    """Return the figures of the latest test."""
    path = max(work_dir.glob('2*/2*.json'))
    return json.loads(path.read_text())


def test_learns_cues_of_all_distances_and_streams_events(
        run_main, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    work_dir = Path('work_dirs') / CONFIG
    checkpoint = work_dir / 'epoch_6.pth'
    # 1. Generate, train and test.
    run_main('data/online/make_pixels.py', 'data/online_pixels')
    run_main('train.py', CONFIG)
    run_main('test.py', CONFIG, checkpoint)
    for kind in 'near', 'mid', 'far':
        out = tmp_path / kind
        run_main('test.py', CONFIG, checkpoint, '--work-dir', out,
                 '--cfg-options',
                 f'test_dataloader.dataset.ann_file=val_{kind}.csv')
        assert results_of(out)['online/mAP_stream'] > .9
    # 2. Stream a file, and compare with one pass over all of its frames.
    video = 'data/online_pixels/videos/val_far_0000.mp4'
    run_main('stream.py', video, CONFIG, checkpoint, '--events',
             'events.jsonl')
    model = mmvidattn.get_model(CONFIG, str(checkpoint))
    scores = scores_of(model, video)
    classes = Path('data/online_pixels/classes.txt').read_text().split()
    detector = EventDetector(classes, {0}, on=.5, off=.3, min_duration=.2)
    expected = []
    for i, row in enumerate(scores):
        expected += detector.update(i / FPS, (i + 1) / FPS, row)
    expected += detector.finish(len(scores) / FPS)
    lines = Path('events.jsonl').read_text().splitlines()
    for line, event in zip(lines, expected, strict=True):
        assert json.loads(line) == pytest.approx(event, abs=1e-5)
    # 3. The events have the classes and times of the video's actions.
    truth = json.loads(Path('data/online_pixels/events.json').read_text())[
        'val_far_0000']
    named = np.array([(classes.index(f'{one["kind"]}_{one["label"]}'),
                       one['start']) for one in truth])
    got = [json.loads(line) for line in lines]
    starts = [event for event in got if event['event'] == 'start']
    assert len(starts) >= .8 * len(named)
    for event in starts:
        assert classes[named[np.abs(
            named[:, 1] - event['start'] * FPS).argmin(), 0]] == (
                event['class'])
