# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import importlib

import pytest
from benchmark_cases import run_case
from made_videos import write_opencv

from mmvidattn.utils.video_readers import why_no_backend

SMALL = ('--repeats', 1, '--size', 96, 64, '--seconds', 2)


@pytest.fixture
def case():
    return importlib.import_module('cases.decode')


def test_frames_are_checked_and_clips_timed(case, tmp_path, capsys):
    path = write_opencv(tmp_path / 'mine.mp4')
    result = run_case('decode', *SMALL, '--videos', path, out=tmp_path)
    assert len(result['videos']) == 2
    mine = result['videos']['mine.mp4']
    assert mine['frames'] == 40
    there = {name for name, options in case.BACKENDS.items()
             if not why_no_backend(options['type'])}
    for found in result['videos'].values():
        assert found['backends'].keys() == there
        for one in found['backends'].values():
            assert one['said'] == 'right' and one['compared'] > 100
            assert one['ms'].keys() == {*case.PATTERNS}
            assert min(one['ms'].values()) > 0
    printed = capsys.readouterr().out
    assert 'sparse' in printed and 'mine.mp4: 40 frames' in printed


def test_wrong_frames_are_counted_and_not_timed(case, tmp_path, monkeypatch,
                                                capsys):
    right = case.open_video

    class Late:
        """One that takes the frame before, as some do after a seek."""

        def __init__(self, reader):
            self.reader = reader

        def __len__(self):
            return len(self.reader)

        def get_batch(self, indices):
            return self.reader.get_batch((indices - 1).clip(0))

    monkeypatch.setattr(case, 'BACKENDS', dict(
        opencv=dict(type='opencv'), late=dict(type='opencv', seek_mode='exact')
    ))
    monkeypatch.setattr(
        case, 'open_video', lambda path, options: Late(right(path, options))
        if 'seek_mode' in options else right(path, options))
    path = write_opencv(tmp_path / 'mine.mp4')
    result = run_case('decode', '--repeats', 1, '--seconds', '--videos', path,
                      out=tmp_path)
    found = result['videos']['mine.mp4']['backends']
    assert 'ms' in found['opencv'] and 'ms' not in found['late']
    # All but those of the first frame.
    assert 0.9 < found['late']['wrong'] / found['late']['compared'] < 1
    assert ' wrong, such as ' in capsys.readouterr().out


def test_missing_backends_are_named(case, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(case, 'why_no_backend', lambda name: (
        f'{name} is not installed' if name != 'opencv' else None))
    result = run_case('decode', *SMALL, out=tmp_path)
    found, = result['videos'].values()
    assert found['reference'] == 'OpenCV'
    assert {*found['backends']} == {'opencv', 'opencv, approximate'}
    assert 'not compared, torchcodec is not installed' in \
        capsys.readouterr().out
