# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from benchmark_cases import run_case
from made_videos import make, write_opencv

from mmvidattn.utils.video_readers import why_no_backend
from tools.benchmark.cases import decode

SMALL = ('--repeats', 1, '--size', 96, 64, '--seconds', 2)


def test_frames_are_checked_and_clips_timed(tmp_path, capsys):
    path = write_opencv(tmp_path / 'mine.mp4')
    result = run_case('decode', *SMALL, '--videos', path, out=tmp_path)
    assert len(result['videos']) == 2
    mine = result['videos']['mine.mp4']
    assert mine['frames'] == 40
    installed = {name for name, options in decode.BACKENDS.items()
                 if not why_no_backend(options['type'])}
    for got in result['videos'].values():
        assert got['backends'].keys() == installed
        for one in got['backends'].values():
            assert one['verdict'] == 'correct' and one['compared'] > 100
            assert one['ms'].keys() == {*decode.PATTERNS}
            assert min(one['ms'].values()) > 0
        assert got['live'].keys() == {'PyAV', 'OpenCV'}
        assert min(got['live'].values()) > 0
    printed = capsys.readouterr().out
    assert 'sparse' in printed and 'mine.mp4: 40 frames' in printed


def test_wrong_frames_are_counted_and_not_timed(tmp_path, monkeypatch,
                                                capsys):
    right = decode.open_video

    class Late:
        """Reader that returns the previous frame, as after a wrong seek."""

        def __init__(self, reader):
            self.reader = reader

        def __len__(self):
            return len(self.reader)

        def get_batch(self, indices):
            return self.reader.get_batch((indices - 1).clip(0))

    monkeypatch.setattr(decode, 'BACKENDS', dict(
        opencv=dict(type='opencv'), late=dict(type='opencv', seek_mode='exact')
    ))
    monkeypatch.setattr(
        decode, 'open_video', lambda path, options: Late(right(path, options))
        if 'seek_mode' in options else right(path, options))
    path = write_opencv(tmp_path / 'mine.mp4')
    result = run_case('decode', '--repeats', 1, '--seconds', '--videos', path,
                      out=tmp_path)
    got = result['videos']['mine.mp4']['backends']
    assert 'ms' in got['opencv'] and 'ms' not in got['late']
    # Only the first frame is right.
    assert 0.9 < got['late']['wrong'] / got['late']['compared'] < 1
    assert ' wrong, such as ' in capsys.readouterr().out


def test_wrong_live_frames_are_not_timed(tmp_path):
    # OpenCV 5.0 misreads it.
    path = make('interlaced', tmp_path)
    assert decode.live_speed(path, 1).keys() == {'PyAV'}
