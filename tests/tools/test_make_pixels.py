# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import csv
import json

import decord
import numpy as np
import pytest

from tools.data.online.make_pixels import (
    FPS,
    GAP,
    Recipe,
    make_video,
)

TOOL = 'data/online/make_pixels.py'
RECIPE = Recipe()
LIMITS = dict(near=(4, 15), mid=(16, 99), far=(100, 500))


@pytest.fixture(scope='module')
def videos():
    return [make_video(0, 'train', i, RECIPE) for i in range(30)]


def test_cues_have_the_distances_of_their_kind(videos):
    found = {kind: [] for kind in LIMITS}
    for _, events in videos:
        for event in events:
            found[event.kind].append(event.start - event.cue)
    for kind, (low, high) in LIMITS.items():
        assert len(found[kind]) > 50
        assert low <= min(found[kind]) <= max(found[kind]) <= high
    assert max(found['far']) > 400


def test_events_do_not_overlap(videos):
    for frames, events in videos:
        spans = sorted([(e.cue, e.cue + 4) for e in events]
                       + [(e.start, e.end) for e in events])
        assert all(end <= start for (_, end), (start, _) in
                   zip(spans, spans[1:]))
        assert spans[-1][1] + GAP <= len(frames)


def test_cue_of_an_action_is_the_latest_of_its_kind(videos):
    for _, events in videos:
        for kind in LIMITS:
            mine = [e for e in events if e.kind == kind]
            assert all(before.end <= after.cue for before, after in
                       zip(mine, mine[1:]))


def test_only_cues_show_the_class(videos):
    """Colors give the class of a cue; actions are white for all classes."""
    for frames, events in videos[:10]:
        for event in events:
            cue = np.median(frames[event.cue].reshape(-1, 3)[
                np.ptp(np.int16(frames[event.cue]), axis=-1).ravel() > 80],
                axis=0)
            errors = [np.abs(cue - color).max()
                      for color in RECIPE.colors(event.kind)]
            assert np.argmin(errors) == event.label and min(errors) < 2
            shown = frames[event.start:event.end]
            assert np.ptp(np.int16(shown[shown.max(-1) > 200]), -1).max() < 80


def test_writes_videos_and_segments(run_main, capsys, tmp_path):
    out = tmp_path / 'set'
    options = out, '--train', 2, '--val', 1, '--frames', 300, '--limits', \
        4, 8, 20, 90
    run_main(TOOL, *options)
    classes = (out / 'classes.txt').read_text().split()
    assert len(classes) == 10 and classes[0] == 'background'
    events = json.loads((out / 'events.json').read_text())
    recipe = Recipe(frames=300, limits=(4, 8, 20, 90))
    with open(out / 'train.csv') as file:
        rows = list(csv.DictReader(file))
    assert {row['video'] for row in rows} == {'train_0000', 'train_0001'}
    for i, name in enumerate(['train_0000', 'train_0001']):
        want, drawn = make_video(0, 'train', i, recipe)
        reader = decord.VideoReader(str(out / f'videos/{name}.mp4'))
        assert len(reader) == len(want) and reader.get_avg_fps() == FPS
        got = reader.get_batch(range(len(want))).asnumpy()
        assert np.abs(np.float32(got) - want).mean() < 8
        mine = [row for row in rows if row['video'] == name]
        assert [(round(float(r['start']) * FPS), round(float(r['end']) * FPS),
                 r['label']) for r in mine] == [
            (e.start, e.end, f'{e.kind}_{e.label}') for e in drawn]
        assert events[name] == [e._asdict() for e in drawn]
    run_main(TOOL, *options)
    assert 'already' in capsys.readouterr().out
    with pytest.raises(SystemExit, match='--overwrite'):
        run_main(TOOL, out, '--train', 3)


@pytest.mark.parametrize('kwargs', [
    dict(frames=500), dict(classes=1), dict(limits=(2, 16, 100, 500)),
    dict(limits=(4, 16, 16, 500))])
def test_rejects_bad_recipes(kwargs):
    with pytest.raises(ValueError, match=next(iter(kwargs))):
        Recipe(**kwargs)
