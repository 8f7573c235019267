# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Generators of data: cued features, cued pixels, long videos and motions."""
import csv
import json
import subprocess
import sys

import decord
import numpy as np
import pytest

from tools.data.motion import make_motion
from tools.data.online import make_events, make_synthetic


def contents(out):
    return {path.relative_to(out).as_posix(): path.read_bytes()
            for path in out.rglob('*') if path.is_file()}


def check_video(path, drawn, fps, error):
    """Compare a file with the drawn frames [T, H, W, 3], by mean error."""
    reader = decord.VideoReader(str(path), num_threads=1)
    assert len(reader) == len(drawn) and reader.get_avg_fps() == fps
    got = reader.get_batch(range(len(drawn))).asnumpy()
    assert got.shape == drawn.shape
    assert np.abs(np.float32(got) - drawn).mean() < error


@pytest.mark.parametrize('tool, options, wrong', [
    ('motion/make_motion.py', ['--train', 2, '--val', 2], ['--train', 0]),
    ('online/make_events.py', ['--videos', 5, '--seconds', 60, '--side', 36],
     ['--videos', 4]),
    ('online/make_pixels.py', ['--train', 2, '--val', 1, '--frames', 300,
                               '--side', 16], ['--seed', -1]),
    ('online/make_synthetic.py', ['--train', 2, '--val', 1, '--steps', 500],
     ['--val', 0])], ids=lambda x: x if isinstance(x, str) else '')
def test_a_set_is_completed_and_replaced_only_when_asked(
        run_main, tmp_path, capsys, tool, options, wrong):
    out = tmp_path / 'set'

    def run(*more):
        run_main(f'data/{tool}', out, *options, *more)

    out.mkdir()
    (out / 'notes.txt').write_text('mine')
    with pytest.raises(SystemExit, match='set is not empty'):
        run('--overwrite')
    (out / 'notes.txt').unlink()
    with pytest.raises(SystemExit, match=f'{wrong[0][2:]} .*at least'):
        run(*wrong)
    run()
    before = contents(out)
    run()
    assert 'already' in capsys.readouterr().out
    # The state after an interruption: not complete, and a file is missing.
    meta = json.loads(before['meta.json'])
    (out / 'meta.json').write_text(json.dumps({**meta, 'complete': 0}))
    (out / max(before)).unlink()
    run()
    assert contents(out) == before
    with pytest.raises(SystemExit, match='--overwrite'):
        run('--seed', 3)
    assert contents(out) == before
    run('--seed', 3, '--overwrite')
    after = contents(out)
    assert after.keys() == before.keys() and after != before


# Feature streams.
def test_targets_and_cues_of_features_match_the_events():
    recipe = make_synthetic.Recipe()
    for i in range(60):
        features, targets, events = make_synthetic.make_stream(
            0, 'train', i, recipe)
        expected = np.zeros_like(targets)
        for event in events:
            kind, _, label = event['event'].rpartition('_')
            if label == 'cue':
                continue
            column = recipe.names.index(event['event'])
            expected[event['start']:event['end'], column] = 1
            if kind not in ('recent', 'long'):
                continue
            cue = [e for e in events if e['event'] == f'{kind}_cue'
                   and e['end'] <= event['start']][-1]
            assert cue['of'] == int(label)
            # Within the work memory of the action's last step, or before it.
            assert event['end'] - cue['start'] <= 32 if kind == 'recent' else (
                100 <= event['start'] - cue['start'] <= 400)
        expected[:, 0] = ~expected.any(axis=1)
        assert (targets == expected).all()
        assert features.shape == (len(targets), 48)
        assert features.dtype == np.float32


# Long videos of events.
def test_events_are_written_as_annotations(tmp_path):
    recipe = make_events.Recipe(seconds=60, side=36)
    make_events.make_events(tmp_path / 'set', 5, 0, recipe)
    with open(tmp_path / 'set/annotations.csv') as file:
        rows = list(csv.DictReader(file))
    subsets = {row['video']: row['subset'] for row in rows}
    assert [*subsets.values()] == ['train'] * 3 + ['val', 'test']
    for i, name in enumerate(subsets):
        want, events = make_events.make_video(0, i, recipe)
        check_video(tmp_path / 'set/videos' / name, want, make_events.FPS, 12)
        assert [(float(row['start']) * make_events.FPS,
                 float(row['end']) * make_events.FPS, row['label'])
                for row in rows if row['video'] == name] == [
            (one.start, one.end, one.label) for one in events]


# Clips of motions.
def test_videos_show_their_clips(motion_dir):
    for i in range(4):
        clip = make_motion.draw_clip(0, 'train', i)
        frames = np.stack([*make_motion.render(clip)])[..., ::-1]
        check_video(motion_dir / f'train/{i:06d}.mp4', frames, clip.fps, 6)
    # Splits and seeds have different clips.
    assert len({str(make_motion.draw_clip(seed, split, 0)) for seed in (0, 1)
                for split in ('train', 'val')}) == 4
    labels = [int(line.split()[1]) for line in (
        motion_dir / 'train.txt').read_text().splitlines()]
    assert np.bincount(labels).tolist() == [2] * 8
    assert (motion_dir / 'label_map.txt').read_text() == '\n'.join(
        [*make_motion.CLASSES, ''])


@pytest.mark.parametrize('kind, motions', [
    ('single', [[one] for one in make_motion.MOTIONS.values()]),
    ('double', [*make_motion.DOUBLE_MOTIONS.values()])])
def test_motions_move_their_phases_only(kind, motions):
    for index, expected in enumerate(motions):
        clip = make_motion.draw_clip(3, 'train', index, kind)
        first, later = (make_motion.state_at(clip, i) for i in (0, 3))
        step = 3 * clip.speed / (clip.num_frames - 1)
        for name in first._fields:
            change = getattr(later, name) - getattr(first, name)
            assert (change + 0.5) % 1 - 0.5 == pytest.approx(
                step * dict(expected).get(name, 0), abs=1e-9)


def test_clips_are_made_after_opencv_has_used_threads(tmp_path):
    code = '''
import cv2, numpy, pathlib
from tools.data.motion.make_motion import make_motion
cv2.setNumThreads(2)
cv2.GaussianBlur(numpy.zeros((999, 999, 3), numpy.uint8), (31, 31), 5)
make_motion(pathlib.Path('set'), 2, 2, 0)
'''
    subprocess.run([sys.executable, '-c', code], cwd=tmp_path, timeout=60,
                   check=True)
    assert (tmp_path / 'set/val.txt').exists()
