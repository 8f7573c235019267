# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import cv2
import numpy as np
import pytest
import torch

import mmvidattn
from mmvidattn.apis.labels import find_labels
from mmvidattn.datasets.annotations.formats import FORMATS, read_annotations
from mmvidattn.live import open_source
from mmvidattn.online.event_thresholds import Thresholds

FPS = 25
CLIPS = range(4)
WINDOW = '--windows', 0.4, '--stride', 0.2


@pytest.fixture(scope='module')
def long_video(motion_dir, tmp_path_factory):
    """Folder with a video of four clips, one after another."""
    folder = tmp_path_factory.mktemp('long')
    writer = None
    for i in CLIPS:
        capture = cv2.VideoCapture(str(motion_dir / f'val/{i:06d}.mp4'))
        while True:
            more, image = capture.read()
            if not more:
                break
            if writer is None:
                height, width = image.shape[:2]
                writer = cv2.VideoWriter(
                    str(folder / 'day.mp4'),
                    cv2.VideoWriter_fourcc(*'mp4v'), FPS, (width, height))
            # The clips have several sizes.
            writer.write(cv2.resize(image, (width, height)))
    writer.release()
    return folder


@pytest.fixture
def predict(run_main, small_config, small_checkpoint):
    def run(video, out, *args):
        run_main('predict', video, small_config, small_checkpoint,
                 '--segments', out, '--device', 'cpu', *args)
    return run


def test_segments_come_from_windows_around_each_step(
        run_main, small_config, long_video, tmp_path):
    """Compare with a window around each step, classified by itself."""
    thresholds = tmp_path / 'thresholds.json'
    # Random weights, because the scores of the trained ones are 0 or 1.
    model = mmvidattn.get_model(small_config)
    checkpoint = tmp_path / 'random.pth'
    torch.save(dict(state_dict=model.state_dict()), checkpoint)
    window, stride = 8, 2
    session = mmvidattn.SlidingClassifier(
        model, fps=FPS, seconds=window / FPS, stride=stride / FPS)
    last = [session.step(frame.image)
            for frame in open_source(long_video / 'day.mp4')]
    scores = np.stack([row.numpy() for row in last if row is not None])
    # Window 8 and stride 2: step j is the middle of window j + 2 or j + 1.
    centered = scores[np.minimum(np.arange(len(scores)) + 2,
                                 len(scores) - 1)]
    names = find_labels(model) or [
        f'class {i}' for i in range(scores.shape[1])]
    # A threshold for each class between the two middle scores.
    half = len(scores) // 2
    on = np.sort(centered, 0)[half - 1:half + 1].mean(0, float).tolist()
    Thresholds({name: dict(on=x, off=x, min_duration=0.)
                for name, x in zip(names, on)}, 'f1@50', 0.5
               ).write(thresholds)
    wanted = []
    for k, name in enumerate(names):
        begin = None
        for j, score in enumerate([*centered[:, k], -1.]):
            if begin is None and score >= np.float32(on[k]):
                begin = j
            elif begin is not None and score < np.float32(on[k]):
                wanted.append((name, begin * stride / FPS, j * stride / FPS,
                               centered[begin:j, k].max()))
                begin = None
    assert len(wanted) >= len(names)
    out = tmp_path / 'out.csv'
    run_main('predict', long_video / 'day.mp4', small_config, checkpoint,
             '--segments', out, '--device', 'cpu', '--windows', window / FPS,
             '--stride', stride / FPS, '--thresholds', thresholds)
    found = sorted((s.labels['action'], s.start, s.end, s.score)
                   for s in read_annotations(out).segments)
    for one, other in zip(found, sorted(wanted), strict=True):
        assert one[0] == other[0]
        assert one[1:3] == pytest.approx(other[1:3])
        # Peaks have four digits.
        assert one[3] == pytest.approx(other[3], abs=1e-4)


# A folder with a file per video, and a format of frames.
@pytest.mark.parametrize('name', ['elan', 'label-studio'])
def test_writes_formats(predict, long_video, tmp_path, capsys, name):
    out = tmp_path / ('out' if FORMATS[name].one_video
                      else f'out{FORMATS[name].suffix}')
    predict(long_video, out, '--to', name, *WINDOW)
    found = read_annotations(out)
    assert found.format == name
    assert {one.video for one in found.segments} <= {'day.mp4'}
    assert f'written: {out}' in capsys.readouterr().out
    if 'scores' not in FORMATS[name].lacks:
        assert all(0 < one.score <= 1 for one in found.segments)


def test_continues_after_a_broken_video(predict, long_video, tmp_path,
                                        capsys):
    (tmp_path / 'broken.mp4').write_text('x')
    (tmp_path / 'good.mp4').write_bytes((long_video / 'day.mp4').read_bytes())
    with pytest.raises(SystemExit, match='1 of 2 videos failed: .*broken.mp4'):
        predict(tmp_path, tmp_path / 'out.csv', *WINDOW)
    assert 'written: ' in capsys.readouterr().out
