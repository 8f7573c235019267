# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import os
import resource
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from live_fixtures import num_handles

from mmvidattn.live import Detection
from mmvidattn.live.file_sinks import SegmentSink

RUN = SimpleNamespace(source=SimpleNamespace(fps=8.), rate=4.)
NONE = np.zeros(0)


def brightness(number):
    """Brightness of a frame, different from the previous frame."""
    return 37 * number % 200 + 20


def detection(step, events=(), num=2, since=None):
    images = [np.full((64, 480, 3), brightness(2 * step + i), np.uint8)
              for i in range(num)]
    return Detection(step, (step + 1) / 4, NONE, NONE, events, images, {},
                     since)


def end(start, stop, start_id=3):
    return {'event': 'end', 'class': 'jump', 'start': start, 'end': stop,
            'start_id': start_id}


def check_frames(path, numbers):
    """Check that a clip has these frames."""
    np.testing.assert_allclose(
        shown(path), [brightness(number) for number in numbers], atol=6)


def shown(path):
    """Return the brightness of a clip's frames below the caption."""
    video, result = cv2.VideoCapture(str(path)), []
    assert video.get(cv2.CAP_PROP_FPS) == 8
    while True:
        is_read, image = video.read()
        if not is_read:
            return result
        result.append(image[-48:].mean())


def test_clip_has_the_action_and_its_margins(tmp_path):
    sink = SegmentSink(tmp_path, RUN, before=.5, after=1.)
    for step in range(40):
        sink.write(detection(step, [end(4., 5.)] * (step == 20),
                             since=4. if 16 <= step < 20 else None))
        # The clip is written when the second after the action has passed.
        assert sink.path(3).exists() == (step >= 23)
    sink.close()
    assert sink.path(3).name == '000003.mp4'
    # The clip lasts from 3.5 s to 6 s, at 8 frames per second.
    check_frames(sink.path(3), range(28, 48))
    assert [path.name for path in tmp_path.iterdir()] == ['000003.mp4']


def test_close_writes_the_last_actions(tmp_path):
    sink = SegmentSink(tmp_path, RUN)
    for step in range(8):
        sink.write(detection(step, [end(.5, 1.5, 0)] * (step == 6),
                             since=.5 if step < 6 else 1.))
    for last in sink.finish([end(1., 2., 1)]):
        sink.write(last)
    sink.close()
    check_frames(sink.path(0), range(16))
    check_frames(sink.path(1), range(16))


def test_earlier_frame_replaces_missing_frames(tmp_path):
    sink = SegmentSink(tmp_path, RUN, before=0, after=0)
    for step in 0, 1, 2, 6, 7:
        sink.write(detection(step, [end(0., 2.)] * (step == 7),
                             since=None if step == 7 else 0.))
    check_frames(sink.path(3), [*range(6), *[5] * 6, *range(12, 16)])


@pytest.mark.parametrize('options', [
    dict(before=-1), dict(after=float('nan'))])
def test_rejects_options(tmp_path, options):
    with pytest.raises(ValueError, match=f'{next(iter(options))} must be'):
        SegmentSink(tmp_path, RUN, **options)


def noisy(step, events=()):
    """Make a detection whose clip is larger than any buffer."""
    rng = np.random.default_rng(step)
    images = rng.integers(0, 255, (2, 96, 480, 3), np.uint8)
    return Detection(step, (step + 1) / 4, NONE, NONE, events, [*images], {},
                     step / 4)


@pytest.mark.skipif(not os.path.isdir('/proc/self/fd'),
                    reason='counts open files in /proc')
def test_failed_write_leaves_no_file_and_no_handle(tmp_path):
    sink = SegmentSink(tmp_path, RUN, before=0, after=0)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = num_handles()
    for number, size in enumerate((0, 40, 9_000, 30_000)):
        sink.write(noisy(2 * number))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            with pytest.raises(OSError):
                sink.write(noisy(2 * number + 1, [
                    end(number / 2, number / 2 + .5, number)]))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert not list(tmp_path.iterdir()), size
        assert num_handles() == before, size
    sink.write(noisy(8))
    sink.write(noisy(9, [end(2., 2.5, 4)]))
    assert [path.name for path in tmp_path.iterdir()] == ['000004.mp4']
    assert len(shown(sink.path(4))) == 4
