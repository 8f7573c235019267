# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
from pathlib import Path

import cv2
import decord
import numpy as np
import pytest
from mmaction.datasets import VideoDataset
from scipy import stats

from tools.data.motion.make_motion import (
    CLASSES,
    DOUBLE_MOTIONS,
    MOTIONS,
    draw_clip,
    make_motion,
    render,
    state_at,
)


def contents(out):
    return {
        p.relative_to(out).as_posix(): p.read_bytes()
        for p in out.rglob('*') if p.is_file()
    }


@pytest.fixture(scope='module')
def motion_set(tmp_path_factory):
    out = tmp_path_factory.mktemp('motion') / 'set'
    assert make_motion(out, 16, 40, 0)
    return out


def test_annotations_load_in_mmaction(motion_set):
    dataset, count = VideoDataset(
        'val.txt', [], data_root=str(motion_set)), 40
    assert len(dataset) == count
    labels = [dataset.get_data_info(i)['label'] for i in range(count)]
    assert np.bincount(labels).tolist() == [count // 8] * 8
    for i in range(count):
        assert Path(dataset.get_data_info(i)['filename']).is_file()
    names = (motion_set / 'label_map.txt').read_text().split('\n')
    assert names == [*CLASSES, '']


def test_decord_decodes_the_drawn_frames(motion_set):
    shapes = set()
    for i in range(40):
        clip = draw_clip(0, 'val', i)
        reader = decord.VideoReader(
            str(motion_set / f'val/{i:06d}.mp4'), num_threads=1)
        assert len(reader) == clip.num_frames
        assert reader.get_avg_fps() == clip.fps
        frames = reader.get_batch(range(clip.num_frames)).asnumpy()
        drawn = np.stack(list(render(clip)))[..., ::-1]
        assert frames.shape == drawn.shape
        error = frames.astype(float) - drawn
        assert np.sqrt((error**2).mean()) < 8
        shapes.add(frames.shape)
    assert len({s[1:3] for s in shapes}) > 10
    assert len({s[0] for s in shapes}) > 10


def test_bytes_depend_on_seed_split_and_index_only(motion_set, tmp_path):
    assert make_motion(tmp_path / 'more', 24, 1, 0)
    assert make_motion(tmp_path / 'other', 16, 1, 1)
    ours, more, other = map(
        contents, (motion_set, tmp_path / 'more', tmp_path / 'other'))
    for i in range(16):
        name = f'train/{i:06d}.mp4'
        assert ours[name] == more[name] != other[name]
    assert ours['val/000000.mp4'] != ours['train/000000.mp4']


def test_state_of_one_frame_is_uniform_in_every_class():
    states = {name: [] for name in CLASSES}
    for i in range(1600):
        clip = draw_clip(0, 'train', i)
        frame = (clip.num_frames - 1) // 2
        states[CLASSES[clip.label]].append(state_at(clip, frame))
    for name, result in states.items():
        result = np.array(result)
        assert result.shape == (200, 4)
        for phase in result.T:
            assert stats.kstest(phase, 'uniform').pvalue > 1e-4, name
        # Check that the phases of a clip are independent of each other.
        correlation = np.corrcoef(np.exp(2j * np.pi * result.T))
        assert np.abs(correlation - np.eye(4)).max() < 0.3, name


def shape_mask(frame):
    """The shape, which is the smaller of the dark and the light part."""
    light = cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY) > 127
    return light if light.mean() < 0.5 else ~light


def centre_on_torus(mask):
    """Centre of mass in periods, along rows and columns."""
    results = []
    for axis, size in enumerate(mask.shape):
        waves = np.exp(2j * np.pi * np.arange(size) / size)
        mass = mask.sum(1 - axis)
        results.append(np.angle((mass * waves).sum()) / (2 * np.pi))
    return np.array(results)


def wrapped(step):
    return (step + 0.5) % 1 - 0.5


def test_videos_show_the_motion_of_their_class(motion_set):
    for i in range(40):
        phase, sign = MOTIONS[CLASSES[i % 8]]
        frames = decord.VideoReader(
            str(motion_set / f'val/{i:06d}.mp4'), num_threads=1)
        masks = [shape_mask(frame.asnumpy()) for frame in frames]
        areas = [mask.sum() for mask in masks]
        grown = np.median(np.diff(areas)) / np.mean(areas)
        if phase == 'size':
            assert sign * grown > 0.005, i
            continue
        moved = sum(
            wrapped(centre_on_torus(b) - centre_on_torus(a))
            for a, b in zip(masks, masks[1:]))
        # A moving shape passes through 0.4 of a period of x or y or more.
        seen = dict(y=moved[0], x=moved[1])
        if phase in seen:
            assert sign * seen.pop(phase) > 0.35, i
        assert abs(areas[-1] / areas[0] - 1) < 0.2, i
        assert max(map(abs, seen.values())) < 0.2, i


@pytest.mark.parametrize('kind', ['single', 'double'])
def test_motions_move_their_phases_only(kind):
    motions = [[one] for one in MOTIONS.values()] if kind == 'single' else [
        *DOUBLE_MOTIONS.values()]
    for index, expected in enumerate(motions):
        clip = draw_clip(3, 'train', index, kind)
        first, later = state_at(clip, 0), state_at(clip, 3)
        step = 3 * clip.speed / (clip.num_frames - 1)
        for name in first._fields:
            change = wrapped(getattr(later, name) - getattr(first, name))
            assert change == pytest.approx(
                step * dict(expected).get(name, 0), abs=1e-9)


def test_a_set_is_completed_and_replaced_only_when_asked(run_main, tmp_path,
                                                         capsys):
    def run(*options):
        run_main('data/motion/make_motion.py', tmp_path, *options)

    small = '--train', 1, '--val', 1
    (tmp_path / 'notes.txt').write_text('mine')
    with pytest.raises(SystemExit, match=str(tmp_path)):
        run(*small, '--overwrite')
    (tmp_path / 'notes.txt').unlink()
    run('--train', 4, '--val', 4)
    before = contents(tmp_path)
    run('--train', 4, '--val', 4)
    assert 'already' in capsys.readouterr().out
    # The state after an interruption: not complete, and a file is missing.
    meta = json.loads(before['meta.json'])
    (tmp_path / 'meta.json').write_text(json.dumps({**meta, 'complete': 0}))
    (tmp_path / 'val/000003.mp4').unlink()
    run('--train', 4, '--val', 4)
    assert contents(tmp_path) == before
    with pytest.raises(SystemExit, match='--overwrite'):
        run(*small)
    assert contents(tmp_path) == before
    run(*small, '--overwrite')
    assert len(list(tmp_path.glob('train/*'))) == 1


# Means, deviation and mean change from frame to frame of clips as they were
# drawn before there was a Difficulty.
@pytest.mark.parametrize('index, shape, mean, std, change', [
    (0, (28, 128, 104, 3), (49.139, 37.223, 63.963), 52.647, 4.466),
    (1, (20, 80, 64, 3), (68.074, 70.285, 88.696), 59.806, 5.990),
    (2, (33, 80, 128, 3), (67.265, 61.882, 88.911), 65.431, 4.582),
], ids=['left', 'right', 'up'])
def test_default_clips_match_the_first_version(index, shape, mean, std,
                                                      change):
    frames = np.float64(list(render(draw_clip(0, 'train', index))))
    assert frames.shape == shape
    assert frames.mean((0, 1, 2)) == pytest.approx(mean, abs=0.01)
    assert frames.std() == pytest.approx(std, abs=0.01)
    assert np.abs(np.diff(frames, axis=0)).mean() == pytest.approx(
        change, abs=0.01)
