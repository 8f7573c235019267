# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Generators of data: cued features, cued pixels, long videos and motions."""
import csv
import json
from dataclasses import replace
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
from tools.data.online import make_events, make_pixels, make_synthetic


def contents(out):
    return {path.relative_to(out).as_posix(): path.read_bytes()
            for path in out.rglob('*') if path.is_file()}


def rows_of(path):
    with open(path) as file:
        return list(csv.DictReader(file))


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
@pytest.fixture(scope='module')
def feature_streams():
    recipe = make_synthetic.Recipe()
    return recipe, [make_synthetic.make_stream(0, 'train', i, recipe)
                    for i in range(60)]


def test_targets_of_features_match_the_events(feature_streams):
    recipe, streams = feature_streams
    for features, targets, events in streams:
        expected = np.zeros_like(targets)
        for event in events:
            if 'cue' not in event['event']:
                column = recipe.names.index(event['event'])
                expected[event['start']:event['end'], column] = 1
        expected[:, 0] = ~expected.any(axis=1)
        assert (targets == expected).all()
        assert (targets.sum(axis=1) == 1).all()
        assert features.shape == (len(targets), 48)
        assert features.dtype == np.float32


def test_cues_of_features_have_the_distances_of_the_recipe(feature_streams):
    for _, _, events in feature_streams[1]:
        cues = [e for e in events if e['event'] == 'long_cue']
        for action in events:
            kind, _, label = action['event'].rpartition('_')
            if kind not in ('recent', 'long') or label == 'cue':
                continue
            cue = [e for e in events if e['event'] == f'{kind}_cue'
                   and e['end'] <= action['start']][-1]
            assert cue['of'] == int(label)
            if kind == 'recent':
                # Within the work memory of the action's last step.
                assert action['end'] - cue['start'] <= 32
            else:
                assert 100 <= action['start'] - cue['start'] <= 400
                # All other cues are farther away.
                assert all(action['end'] - e['start'] > 440 for e in cues
                           if e['start'] < cue['start'])


# Videos of patterns, with the least and most frames from a cue to its action.
LIMITS = dict(train=(4, 500), near=(4, 31), mid=(32, 99), far=(100, 500))


@pytest.mark.parametrize('name', LIMITS)
def test_cues_of_pixels_decide_the_actions_at_the_distances_of_their_kind(
        name):
    # Small frames, for speed.
    recipe = make_pixels.Recipe(side=8)
    looks = make_pixels.patterns(0, recipe)
    recipe = replace(recipe, **make_pixels.KINDS.get(name, {}))
    distances = []
    for i in range(12):
        stream, latest = make_pixels.make_stream([0, i], looks, recipe), None
        for event in stream.events:
            if event.kind == 'cue':
                latest = event
            else:
                distances.append(
                    event.start - event.cue - make_pixels.CUE_FRAMES)
            assert (event.label, event.cue) == (latest.label, latest.start)
            column = 1 + event.label + 4 * (event.kind == 'action')
            shown = stream.targets[event.start:event.end]
            assert shown[:, column].all() and (shown.sum(axis=1) == 1).all()
    low, high = LIMITS[name]
    assert len(distances) > 100
    assert low <= min(distances) < low + 10
    assert high * .7 < max(distances) <= high


def test_pixels_are_written_with_their_segments(tmp_path):
    out, recipe = tmp_path / 'set', make_pixels.Recipe(frames=300)
    make_pixels.make_pixels(out, 2, 1, 0, recipe)
    classes = (out / 'classes.txt').read_text().split()
    assert classes == ['background'] + [
        f'{kind}_{i}' for kind in ('cue', 'action') for i in range(4)]
    rows = {name: rows_of(out / f'{name}.csv') for name in (
        'train', 'val', *(f'val_{kind}' for kind in make_pixels.KINDS))}
    assert rows['val'] == sum(
        (rows[f'val_{kind}'] for kind in make_pixels.KINDS), [])
    assert {row['video'] for row in rows['val_far']} == {'val_far_0000'}
    events = json.loads((out / 'events.json').read_text())
    for i, name in enumerate(['train_0000', 'train_0001']):
        drawn = make_pixels.make_stream(
            [0, 0, i], make_pixels.patterns(0, recipe), recipe)
        check_video(out / f'videos/{name}.mp4', make_pixels.frames_of(
            drawn, recipe).transpose(0, 2, 3, 1), make_pixels.FPS, 10)
        assert [(round(float(r['start']) * make_pixels.FPS),
                 round(float(r['end']) * make_pixels.FPS), r['label'])
                for r in rows['train'] if r['video'] == name] == [
            (e.start, e.end, f'{e.kind}_{e.label}') for e in drawn.events]
        assert events[name] == [e._asdict() for e in drawn.events]


# Long videos of events.
def test_events_are_shown_and_else_in_flashes():
    fps, spans = make_events.FPS, []
    for i in range(2):
        frames, events = make_events.make_video(0, i, make_events.Recipe(
            seconds=150, side=40, noise=0, gray=0, contrast=1))
        assert 0.9 * 150 * fps - 1 <= len(frames) <= 1.1 * 150 * fps
        assert all(one.end < after.start
                   for one, after in zip(events, events[1:]))
        assert events[-1].end <= len(frames)
        spans += [one.end - one.start for one in events]
        assert {one.label for one in events} <= {*make_events.CLASSES}

        def shown(frame, hue):
            """Return True if at least a quarter of a square has a hue."""
            color = make_events.color_of(hue)
            return (np.abs(np.float32(frame) - color).max(-1) < 2).sum() > 80

        for label, hue in make_events.HUES.items():
            truth = np.zeros(len(frames), bool)
            for one in events:
                if one.label == label:
                    truth[one.start:one.end] = True
            seen = np.array([shown(frame, hue) for frame in frames])
            assert seen[truth].all()
            # Each run of frames outside of events is shorter than a second.
            runs = np.split(seen & ~truth, np.flatnonzero(~seen))
            assert max(map(np.sum, runs)) < fps
        assert any(shown(frame, hue) for frame in frames[::5]
                   for hue in make_events.CLUTTER_HUES)
    assert 3 * fps <= min(spans) < 8 * fps and 20 * fps < max(spans) <= 400


def test_events_are_written_as_annotations(tmp_path):
    recipe = make_events.Recipe(seconds=60, side=36)
    make_events.make_events(tmp_path / 'set', 5, 0, recipe)
    rows = rows_of(tmp_path / 'set/annotations.csv')
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
def test_motions_load_in_mmaction(motion_dir):
    dataset = VideoDataset('train.txt', [], data_root=str(motion_dir))
    facts = [dataset.get_data_info(i) for i in range(len(dataset))]
    assert np.bincount([one['label'] for one in facts]).tolist() == [2] * 8
    assert all(Path(one['filename']).is_file() for one in facts)
    names = (motion_dir / 'label_map.txt').read_text().split('\n')
    assert names == [*CLASSES, '']


def test_bytes_depend_on_seed_split_and_index_only(motion_dir, tmp_path):
    assert make_motion(tmp_path / 'fewer', 8, 1, 0)
    assert make_motion(tmp_path / 'other', 8, 1, 1)
    ours, fewer, other = map(
        contents, (motion_dir, tmp_path / 'fewer', tmp_path / 'other'))
    for i in range(8):
        name = f'train/{i:06d}.mp4'
        assert ours[name] == fewer[name] != other[name]
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


def place_of(mask):
    """Return the center of a shape in periods, along rows and columns."""
    places = []
    for axis, size in enumerate(mask.shape):
        waves = np.exp(2j * np.pi * np.arange(size) / size)
        places.append(np.angle((mask.sum(1 - axis) * waves).sum()))
    return np.array(places) / (2 * np.pi)


def wrapped(step):
    return (step + 0.5) % 1 - 0.5


def test_videos_show_the_drawn_motion_of_their_class(motion_dir):
    shapes = set()
    for i in range(16):
        phase, sign = MOTIONS[CLASSES[i % 8]]
        clip = draw_clip(0, 'train', i)
        path = motion_dir / f'train/{i:06d}.mp4'
        drawn = np.stack(list(render(clip)))[..., ::-1]
        check_video(path, drawn, clip.fps, 6)
        shapes.add(drawn.shape)
        # The shape is the smaller of the dark and the light part.
        light = [cv2.cvtColor(frame, cv2.COLOR_BGR2GRAY) > 127
                 for frame in drawn]
        masks = [mask if mask.mean() < 0.5 else ~mask for mask in light]
        areas = [mask.sum() for mask in masks]
        if phase == 'size':
            grown = np.median(np.diff(areas)) / np.mean(areas)
            assert sign * grown > 0.005, i
            continue
        y, x = sum(wrapped(place_of(b) - place_of(a))
                   for a, b in zip(masks, masks[1:]))
        # A moving shape passes through 0.4 of a period of x or y or more.
        seen = dict(y=y, x=x)
        if phase in seen:
            assert sign * seen.pop(phase) > 0.35, i
        assert abs(areas[-1] / areas[0] - 1) < 0.2, i
        assert max(map(abs, seen.values())) < 0.2, i
    assert len({s[1:3] for s in shapes}) > 8
    assert len({s[0] for s in shapes}) > 8


@pytest.mark.parametrize('kind, motions', [
    ('single', [[one] for one in MOTIONS.values()]),
    ('double', [*DOUBLE_MOTIONS.values()])], ids=['single', 'double'])
def test_motions_move_their_phases_only(kind, motions):
    for index, expected in enumerate(motions):
        clip = draw_clip(3, 'train', index, kind)
        first, later = state_at(clip, 0), state_at(clip, 3)
        step = 3 * clip.speed / (clip.num_frames - 1)
        for name in first._fields:
            change = wrapped(getattr(later, name) - getattr(first, name))
            assert change == pytest.approx(
                step * dict(expected).get(name, 0), abs=1e-9)


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
