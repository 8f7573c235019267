# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import cv2
import decord
import numpy as np
import pytest
from mmaction.datasets import VideoDataset
from scipy import stats

TOOL = Path(__file__).parents[2] / 'tools/data/motion/make_motion.py'
sys.path.insert(0, str(TOOL.parent))
from make_motion import (  # noqa: E402
    CLASSES,
    MOTIONS,
    draw_clip,
    render,
    state_at,
)


def run(out, *args):
    return subprocess.run(
        [sys.executable, TOOL, out, *map(str, args)],
        capture_output=True,
        text=True)


def contents(out):
    return {
        p.relative_to(out).as_posix(): p.read_bytes()
        for p in out.rglob('*') if p.is_file()
    }


@pytest.fixture(scope='module')
def motion_set(tmp_path_factory):
    out = tmp_path_factory.mktemp('motion') / 'set'
    done = run(out, '--train', 16, '--val', 80)
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.parametrize('split, count', [('train', 16), ('val', 80)])
def test_annotations_load_in_mmaction(motion_set, split, count):
    dataset = VideoDataset(
        f'{split}.txt', [], data_root=str(motion_set))
    assert len(dataset) == count
    labels = [dataset.get_data_info(i)['label'] for i in range(count)]
    assert np.bincount(labels).tolist() == [count // 8] * 8
    for i in range(count):
        assert Path(dataset.get_data_info(i)['filename']).is_file()
    names = (motion_set / 'label_map.txt').read_text().split('\n')
    assert names == [*CLASSES, '']


def test_decord_decodes_what_was_drawn(motion_set):
    shapes = set()
    for i in range(80):
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
    assert run(tmp_path / 'more', '--train', 24, '--val', 8).returncode == 0
    assert run(tmp_path / 'other', '--train', 16, '--val', 8, '--seed',
               1).returncode == 0
    ours, more, other = map(
        contents, (motion_set, tmp_path / 'more', tmp_path / 'other'))
    for i in range(16):
        name = f'train/{i:06d}.mp4'
        assert ours[name] == more[name] != other[name]
    assert ours['val/000000.mp4'] != ours['train/000000.mp4']


@pytest.mark.parametrize('when', [0, 0.5, 1])
def test_state_of_one_frame_is_uniform_in_every_class(when):
    states = {name: [] for name in CLASSES}
    for i in range(3200):
        clip = draw_clip(0, 'train', i)
        frame = round(when * (clip.num_frames - 1))
        states[CLASSES[clip.label]].append(state_at(clip, frame))
    for name, found in states.items():
        found = np.array(found)
        assert found.shape == (400, 4)
        for phase in found.T:
            assert stats.kstest(phase, 'uniform').pvalue > 1e-4, name
        # The phases of one clip do not tell of each other either.
        correlation = np.corrcoef(np.exp(2j * np.pi * found.T))
        assert np.abs(correlation - np.eye(4)).max() < 0.2, name


def test_nothing_but_motion_depends_on_the_class():
    clips = [draw_clip(0, 'train', i) for i in range(3200)]
    for field in ('width', 'height', 'num_frames', 'fps', 'texture_seed'):
        values = [getattr(clip, field) for clip in clips]
        everything = np.array(values)
        for label in range(8):
            pvalue = stats.ks_2samp(everything[label::8], everything).pvalue
            assert pvalue > 1e-4, (field, label)


@pytest.mark.parametrize('frame', [0, 7])
def test_classes_in_the_same_state_look_the_same(frame):
    clip = draw_clip(0, 'train', 5)
    wanted = list(render(clip))[frame]
    state = state_at(clip, frame)
    for label, (phase, sign) in enumerate(MOTIONS.values()):
        back = (getattr(state, phase) -
                sign * clip.speed * frame / (clip.num_frames - 1)) % 1
        other = replace(
            clip, label=label, start=state._replace(**{phase: back}))
        np.testing.assert_array_equal(list(render(other))[frame], wanted)


def shape_mask(frame):
    """The shape, which is the smaller of the dark and the light part."""
    light = cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY) > 127
    return light if light.mean() < 0.5 else ~light


def centre_on_torus(mask):
    """Centre of mass in periods, along rows and columns."""
    found = []
    for axis, size in enumerate(mask.shape):
        waves = np.exp(2j * np.pi * np.arange(size) / size)
        mass = mask.sum(1 - axis)
        found.append(np.angle((mass * waves).sum()) / (2 * np.pi))
    return np.array(found)


def wrapped(step):
    return (step + 0.5) % 1 - 0.5


def turn(one, two):
    """Turn from one mask to the other, in periods, clockwise."""
    rings = []
    for mask in (one, two):
        size = np.array(mask.shape)
        shift = size // 2 - np.rint(centre_on_torus(mask) * size).astype(int)
        centred = np.roll(mask, shift, (0, 1)).astype(np.float32)
        middle = (float(size[1] // 2), float(size[0] // 2))
        polar = cv2.warpPolar(centred, (32, 360), middle,
                              float(size.min() // 2), cv2.INTER_LINEAR)
        rings.append(np.fft.fft(polar, axis=0))
    match = np.fft.ifft(rings[1] * rings[0].conj(), axis=0).real.sum(1)
    return wrapped(match.argmax() / 360)


def test_videos_show_the_motion_of_their_class(motion_set):
    for i in range(80):
        label = i % 8
        frames = decord.VideoReader(
            str(motion_set / f'val/{i:06d}.mp4'), num_threads=1)
        masks = [shape_mask(frame.asnumpy()) for frame in frames]
        moved = sum(
            wrapped(centre_on_torus(b) - centre_on_torus(a))
            for a, b in zip(masks, masks[1:]))
        areas = [mask.sum() for mask in masks]
        grown = np.median(np.diff(areas)) / np.mean(areas)
        turned = sum(turn(a, b) for a, b in zip(masks, masks[1:]))
        phase, sign = MOTIONS[CLASSES[label]]
        if phase == 'size':
            assert sign * grown > 0.005, i
            continue
        # In x, y and angle a clip runs through 0.4 of a period or more.
        seen = dict(x=moved[1], y=moved[0], angle=turned)
        assert sign * seen.pop(phase) > 0.35, i
        assert abs(areas[-1] / areas[0] - 1) < 0.2, i
        assert max(map(abs, seen.values())) < 0.2, i


def test_second_run_changes_nothing(motion_set):
    before = {p: p.stat().st_mtime_ns for p in motion_set.rglob('*')}
    done = run(motion_set, '--train', 16, '--val', 80)
    assert done.returncode == 0 and 'already' in done.stdout
    assert {p: p.stat().st_mtime_ns for p in motion_set.rglob('*')} == before


def test_interrupted_run_is_repeated(tmp_path):
    assert run(tmp_path, '--train', 8, '--val', 8).returncode == 0
    whole = contents(tmp_path)
    meta = json.loads(whole['meta.json'])
    (tmp_path / 'meta.json').write_text(json.dumps({**meta, 'complete': 0}))
    (tmp_path / 'val/000003.mp4').unlink()
    (tmp_path / 'val.txt').unlink()
    assert run(tmp_path, '--train', 8, '--val', 8).returncode == 0
    assert contents(tmp_path) == whole


def test_another_set_is_replaced_only_when_asked(tmp_path):
    assert run(tmp_path, '--train', 16, '--val', 8).returncode == 0
    before = contents(tmp_path)
    refused = run(tmp_path, '--train', 8, '--val', 8)
    assert refused.returncode != 0 and '--overwrite' in refused.stderr
    assert contents(tmp_path) == before
    assert run(tmp_path, '--train', 8, '--val', 8,
               '--overwrite').returncode == 0
    assert len(list(tmp_path.glob('train/*'))) == 8


@pytest.mark.parametrize('name', ['notes.txt', 'meta.json'])
def test_refuses_a_folder_it_did_not_make(tmp_path, name):
    (tmp_path / name).write_text('{"mine": true}')
    refused = run(tmp_path, '--train', 8, '--val', 8, '--overwrite')
    assert refused.returncode != 0 and str(tmp_path) in refused.stderr
    assert 'Traceback' not in refused.stderr
    assert list(contents(tmp_path)) == [name]


def test_rejects_an_empty_split(tmp_path):
    refused = run(tmp_path / 'set', '--train', 0)
    assert refused.returncode != 0 and 'train' in refused.stderr
    assert not (tmp_path / 'set').exists()
