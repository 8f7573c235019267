# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The four commands of the page that lead from videos to mAP."""
import json

import decord
import numpy as np

NUM_VIDEOS = 6


def test_four_commands(motion_dir, run_main, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    readers = {path: decord.VideoReader(str(path))
               for path in (motion_dir / 'train').glob('*.mp4')}
    videos = sorted(readers, key=lambda path: (len(readers[path]), path))[
        -NUM_VIDEOS:]
    lines = ['video,start,end,label,subset']
    for i, video in enumerate(videos):
        # The first half of the video.
        half = len(readers[video]) / readers[video].get_avg_fps() / 2
        lines.append(f'{video.stem},0,{half:.2f},{("moves", "turns")[i % 2]},'
                     f'{"train" if i < NUM_VIDEOS - 2 else "val"}')
    (tmp_path / 'mine.csv').write_text('\n'.join(lines))
    options = ['--cfg-options', 'model.cls_head.num_classes=3',
               'train_cfg.max_epochs=2', 'param_scheduler.end=2']
    # Eight steps per second, because the videos last only a few seconds.
    run_main('extract-features', *videos, 'data/online/rgb',
             'linear_ff_tiny_motion', '--rate', 8)
    assert f'{NUM_VIDEOS} videos written' in capsys.readouterr().out
    run_main('targets', 'csv', 'mine.csv', 'data/online',
             '--features', 'data/online/rgb', '--rate', 8)
    run_main('train.py', 'testra_tiny_videos', *options)
    run_main('test.py', 'testra_tiny_videos',
             'work_dirs/testra_tiny_videos/epoch_2.pth', *options)
    data = tmp_path / 'data/online'
    assert (data / 'classes.txt').read_text().split() == [
        'background', 'moves', 'turns']
    targets = [np.load(path) for path in data.glob('target_perframe/*.npy')]
    assert 0.3 < np.concatenate(targets)[:, 0].mean() < 0.55
    path, = tmp_path.glob('work_dirs/testra_tiny_videos/2*/2*.json')
    metrics = json.loads(path.read_text())
    assert set(metrics) >= {'online/mAP_dense', 'online/AP_dense_moves',
                            'online/AP_dense_turns'}
    assert 0 < metrics['online/mAP_dense'] <= 1
