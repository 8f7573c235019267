# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import shutil

import cv2
import decord
import numpy as np
import pytest
import torch
from made_videos import write_opencv

import mmvidattn
from mmvidattn.datasets.annotations.formats import read_annotations
from mmvidattn.evaluation.events import detect_events
from mmvidattn.live import open_source
from mmvidattn.online.event_thresholds import Thresholds
from mmvidattn.online.frame_scores import FrameScores
from mmvidattn.visualization import VideoWriter

FPS = 25


@pytest.fixture(scope='module')
def classifier(small_config, small_checkpoint):
    return mmvidattn.VideoClassifier(small_config, small_checkpoint)


@pytest.fixture
def predict(run_main, small_config, small_checkpoint):
    def run(*words):
        *videos, end = words
        run_main('predict.py', *videos, small_config, small_checkpoint, *end)

    return run


def test_predicts_a_folder(predict, classifier, motion_dir, tmp_path, capsys):
    clips = tmp_path / 'clips'
    (clips / 'sub').mkdir(parents=True)
    names = ['a.mp4', 'sub/a.MP4']
    for i, name in enumerate(names):
        shutil.copy(motion_dir / f'val/{i:06d}.mp4', clips / name)
    (clips / 'notes.txt').write_text('no video')
    # The picture of an earlier prediction does not make it a folder of frames.
    (clips / 'prediction.png').write_bytes(b'')
    (tmp_path / 'labels.txt').write_text(
        '\n'.join(f'mine {i}' for i in range(8)))
    predict(clips, ['--out', tmp_path / 'out', '--json',
                    tmp_path / 'new/out.json', '--device', 'cpu',
                    '--labels', tmp_path / 'labels.txt'])
    printed = capsys.readouterr()
    assert '100%' in printed.err
    results = json.loads((tmp_path / 'new/out.json').read_text())
    assert [r['video'] for r in results] == [str(clips / n) for n in names]
    for name, result in zip(names, results):
        expected = classifier(clips / name).predictions
        for got, one in zip(result['predictions'], expected, strict=True):
            assert got['label'] == f'mine {one.index}'
            assert got['score'] == pytest.approx(one.score, abs=1e-5)
        lines = [f'{p.score:6.3f}  mine {p.index}' for p in expected]
        assert len(lines) == 5
        assert '\n'.join([str(clips / name), *lines]) in printed.out
        before, after = (len(decord.VideoReader(str(path))) for path in (
            clips / name, (tmp_path / 'out' / name).with_suffix('.mp4')))
        assert after == before


def test_windows_are_written_and_shown(predict, classifier, video, tmp_path,
                                       capsys, monkeypatch):
    captions, write = [], VideoWriter.write
    monkeypatch.setattr(VideoWriter, 'write', lambda self, frame, lines: (
        captions.append(lines), write(self, frame, lines)))
    (tmp_path / 'broken.mp4').write_text('no video')
    with pytest.raises(SystemExit, match='1 of 2 videos failed: .*broken.mp4'):
        predict(tmp_path / 'broken.mp4', video, [
            '--windows', '.2', '--stride', '.3', '--batch-size', '2',
            '--json-lines', tmp_path / 'new/out.jsonl', '--out',
            tmp_path / 'out'])
    text = (tmp_path / 'new/out.jsonl').read_text()
    broken, *got = map(json.loads, text.splitlines())
    assert broken['error'].startswith('cannot read ')
    expected = [*classifier.windows(video, .2, .3)]
    assert len(expected) > 2
    for one, other in zip(got, expected, strict=True):
        assert (one['video'], one['start']) == (str(video), other.start)
        assert one['end'] == pytest.approx(other.end, abs=1e-3)
        assert [p['score'] for p in one['predictions']] == pytest.approx(
            [p.score for p in other.predictions], abs=1e-5)
    printed = capsys.readouterr().out
    assert f'{video}, 0.30 to 0.50 s\n' in printed
    assert f'written: {tmp_path}/out/{video.name}\n' in printed
    # 22 frames at 25 frames per second; between the windows is a gap.
    for i, lines in enumerate(captions):
        window = expected[int((i / FPS + 1e-9) // .3)]
        if i / FPS < window.end:
            best = window.predictions[0]
            assert lines[0] == f'{window.start:.2f} to {window.end:.2f} s'
            assert lines[1][0].endswith(best.label)
            assert lines[1][1] == best.index
        else:
            assert lines == [''] * 6
    assert len(captions) == 22 and [''] * 6 in captions
    assert len(decord.VideoReader(str(tmp_path / f'out/{video.name}'))) == 22


def test_output_has_no_control_sequences(
        run_main, motion_dir, small_config, small_checkpoint, tmp_path,
        capsys):
    """Names of classes and videos are not trusted."""
    model = torch.load(small_checkpoint, weights_only=True)
    model['meta']['dataset_meta']['classes'] = [
        f'class\x1b]0;{i}\x07\x9b2J\u202e' for i in range(8)]
    torch.save(model, tmp_path / 'model.pth')
    shutil.copy(motion_dir / 'val/000001.mp4', tmp_path / 'a\x1b[31m\x9b.mp4')
    (tmp_path / 'b\x1b[2J\x9b.mp4').write_bytes(b'no video' * 99)
    words = 'predict.py', tmp_path, small_config, tmp_path / 'model.pth'
    with pytest.raises(SystemExit) as end:
        run_main(*words, '--json', tmp_path / 'out.json')
    out, error = capsys.readouterr()
    for text in out, error, str(end.value):
        assert not {'\x1b', '\x07', '\x9b', '\u202e'} & set(text)
    assert 'a\\x1b[31m\\x9b.mp4\n' in out and 'class\\x1b]0;' in out
    assert 'cannot read' in error and 'b\\x1b[2J\\x9b.mp4' in error
    assert 'b\\x1b[2J\\x9b.mp4' in str(end.value)
    with pytest.raises(SystemExit, match=r'no\\x1b\[31m\.txt'):
        run_main(*words, '--labels', 'no\x1b[31m.txt')


@pytest.fixture(scope='module')
def day(motion_dir, tmp_path_factory):
    """Video of four clips, one after another, alone in a folder."""
    path = tmp_path_factory.mktemp('long') / 'day.mp4'
    readers = [decord.VideoReader(str(motion_dir / f'val/{i:06d}.mp4'),
                                  width=96, height=80) for i in range(4)]
    return write_opencv(path, [
        image for reader in readers
        for image in reader.get_batch(range(len(reader))).asnumpy()], FPS)


def test_segments_come_from_windows_around_each_step(predict, classifier, day,
                                                     tmp_path):
    """Compare with a window around each step, classified by itself."""
    window, stride = 8, 2
    session = mmvidattn.SlidingClassifier(
        classifier.model, fps=FPS, seconds=window / FPS, stride=stride / FPS)
    last = [session.step(frame.image) for frame in open_source(day)]
    scores = np.stack([row.numpy() for row in last if row is not None])
    # Window 8 and stride 2: step j is the middle of window j + 2 or j + 1.
    centered = scores[np.minimum(np.arange(len(scores)) + 2, len(scores) - 1)]
    # A threshold for each class between the two middle scores.
    half = len(scores) // 2
    on = np.sort(centered, 0)[half - 1:half + 1].mean(0, float).tolist()
    names = classifier.labels
    tuned = {name: dict(on=x, off=x, min_duration=0.)
             for name, x in zip(names, on)}
    Thresholds(tuned, 'f1@50', 0.5).write(tmp_path / 'thresholds.json')
    wanted = detect_events({'day': FrameScores(FPS / stride, centered)},
                           names, (), thresholds=tuned)
    assert len(wanted) >= len(names)
    predict(day, ['--segments', tmp_path / 'out.csv', '--device', 'cpu',
                  '--windows', window / FPS, '--stride', stride / FPS,
                  '--thresholds', tmp_path / 'thresholds.json'])
    found, wanted = (sorted(
        (s.labels['action'], s.start, s.end, s.score) for s in segments)
        for segments in (read_annotations(tmp_path / 'out.csv').segments,
                         wanted))
    for one, other in zip(found, wanted, strict=True):
        # Times have three digits, and peaks have four.
        assert one[0] == other[0]
        assert one[1:3] == tuple(round(time, 3) for time in other[1:3])
        assert one[3] == pytest.approx(other[3], abs=1e-4)


# A folder with a file per video, and a format of frames.
@pytest.mark.parametrize('name, file', [('elan', 'out'),
                                        ('label-studio', 'out.json')])
def test_writes_formats_and_continues_after_a_broken_video(
        predict, day, tmp_path, capsys, name, file):
    (tmp_path / 'broken.mp4').write_text('x')
    out = tmp_path / file
    with pytest.raises(SystemExit, match='1 of 2 videos failed: .*broken.mp4'):
        predict(tmp_path / 'broken.mp4', day, [
            '--segments', out, '--to', name, '--windows', .4, '--stride', .2])
    found = read_annotations(out)
    assert found.format == name
    assert {one.video for one in found.segments} <= {'day.mp4'}
    assert f'written: {out}' in capsys.readouterr().out
    if name == 'label-studio':
        assert all(0 < one.score <= 1 for one in found.segments)


def test_notes_that_a_picture_has_no_motion(predict, tmp_path, capsys):
    cv2.imwrite(str(tmp_path / 'a.jpg'), np.zeros((64, 64, 3), np.uint8))
    predict(tmp_path / 'a.jpg', [])
    assert 'a.jpg: a single picture has no motion' in capsys.readouterr().err
