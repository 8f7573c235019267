# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The four commands of the page that lead from videos to mAP."""
import json
from pathlib import Path

import decord
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


def seconds(video):
    reader = decord.VideoReader(str(video))
    return len(reader) / reader.get_avg_fps()


@pytest.fixture(scope='module')
def videos(motion_dir):
    """The eight longest generated videos."""
    return sorted((motion_dir / 'train').glob('*.mp4'), key=seconds)[-8:]


@pytest.fixture(scope='module')
def folder(videos, tmp_path_factory):
    """Working folder with annotations of the videos."""
    cwd = tmp_path_factory.mktemp('videos')
    lines = ['video,start,end,label,subset']
    for i, video in enumerate(videos):
        # The first half of the video.
        lines.append(f'{video.stem},0,{seconds(video) / 2:.3f},'
                     f'{("moves", "turns")[i % 2]},{("train", "val")[i > 5]}')
    (cwd / 'mine.csv').write_text('\n'.join(lines) + '\n')
    return cwd


def test_four_commands(folder, videos, run_main, capsys, monkeypatch):
    options = ['--cfg-options', 'model.cls_head.num_classes=3',
               'train_cfg.max_epochs=2', 'param_scheduler.end=2']
    monkeypatch.chdir(folder)
    # Eight steps per second, because the videos last only a few seconds.
    run_main('extract-features', *videos, 'data/online/rgb',
             'linear_ff_tiny_motion', '--rate', 8)
    assert '8 videos written' in capsys.readouterr().out
    run_main('targets', 'csv', 'mine.csv', 'data/online',
             '--features', 'data/online/rgb', '--rate', 8)
    run_main('train.py', 'testra_tiny_videos', *options)
    run_main('test.py', 'testra_tiny_videos',
             'work_dirs/testra_tiny_videos/epoch_2.pth', *options)

    classes = (folder / 'data/online/classes.txt').read_text().split()
    assert classes == ['background', 'moves', 'turns']
    targets = [np.load(p) for p in (folder / 'data/online/target_perframe'
                                    ).glob('*.npy')]
    share = np.concatenate(targets)[:, 0].mean()
    assert 0.3 < share < 0.55
    path, = folder.glob('work_dirs/testra_tiny_videos/2*/2*.json')
    metrics = json.loads(path.read_text())
    assert set(metrics) >= {'online/mAP_dense', 'online/AP_dense_moves',
                            'online/AP_dense_turns'}
    assert 0 < metrics['online/mAP_dense'] <= 1
