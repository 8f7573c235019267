# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import csv
import json
from dataclasses import replace

import decord
import numpy as np
import pytest

from tools.data.online.make_pixels import (
    CUE_FRAMES,
    FPS,
    KINDS,
    Recipe,
    frames_of,
    make_stream,
    patterns,
)

TOOL = 'data/online/make_pixels.py'
# Small frames, for speed.
RECIPE = Recipe(side=8)
LOOKS = patterns(0, RECIPE)
LIMITS = dict(train=(4, 500), near=(4, 31), mid=(32, 99), far=(100, 500))


@pytest.fixture(scope='module')
def streams():
    recipes = dict(train=RECIPE, **{
        kind: replace(RECIPE, **limits) for kind, limits in KINDS.items()})
    return {name: [make_stream([0, i], LOOKS, recipe) for i in range(12)]
            for name, recipe in recipes.items()}


@pytest.mark.parametrize('name', LIMITS)
def test_cues_have_the_distances_of_their_kind(streams, name):
    results = [event.start - event.cue - CUE_FRAMES for stream in streams[name]
               for event in stream.events if event.kind == 'action']
    low, high = LIMITS[name]
    assert len(results) > 100
    assert low <= min(results) <= max(results) <= high
    assert min(results) < low + 10
    assert max(results) > high * .7


def test_class_of_an_action_is_the_latest_cue(streams):
    for stream in sum(streams.values(), []):
        latest = None
        for event in stream.events:
            if event.kind == 'cue':
                latest = event
            assert (event.label, event.cue) == (latest.label, latest.start)
            column = 1 + event.label + 4 * (event.kind == 'action')
            shown = stream.targets[event.start:event.end]
            assert shown[:, column].all() and (shown.sum(axis=1) == 1).all()


def test_writes_videos_and_segments(run_main, capsys, tmp_path):
    out = tmp_path / 'set'
    options = out, '--train', 2, '--val', 1, '--frames', 300
    run_main(TOOL, *options)
    classes = (out / 'classes.txt').read_text().split()
    assert classes == ['background'] + [
        f'{kind}_{i}' for kind in ('cue', 'action') for i in range(4)]
    events = json.loads((out / 'events.json').read_text())
    recipe = Recipe(frames=300)
    rows = {}
    for name in ('train', 'val', *(f'val_{kind}' for kind in KINDS)):
        with open(out / f'{name}.csv') as file:
            rows[name] = list(csv.DictReader(file))
    assert rows['val'] == sum((rows[f'val_{kind}'] for kind in KINDS), [])
    assert {row['video'] for row in rows['val_far']} == {'val_far_0000'}
    for i, name in enumerate(['train_0000', 'train_0001']):
        drawn = make_stream([0, 0, i], patterns(0, recipe), recipe)
        want = frames_of(drawn, recipe).transpose(0, 2, 3, 1)
        reader = decord.VideoReader(str(out / f'videos/{name}.mp4'))
        assert len(reader) == len(want) and reader.get_avg_fps() == FPS
        got = reader.get_batch(range(len(want))).asnumpy()
        assert np.abs(np.float32(got) - want).mean() < 10
        mine = [row for row in rows['train'] if row['video'] == name]
        assert [(round(float(r['start']) * FPS), round(float(r['end']) * FPS),
                 r['label']) for r in mine] == [
            (e.start, e.end, f'{e.kind}_{e.label}') for e in drawn.events]
        assert events[name] == [e._asdict() for e in drawn.events]
    run_main(TOOL, *options)
    assert 'already' in capsys.readouterr().out
    with pytest.raises(SystemExit, match='--overwrite'):
        run_main(TOOL, out, '--train', 3)
