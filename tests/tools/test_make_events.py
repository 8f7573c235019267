# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import csv

import decord
import numpy as np
import pytest

from tools.data.online.make_events import (
    CLASSES,
    CLUTTER_HUES,
    FPS,
    HUES,
    Recipe,
    color_of,
    make_video,
)

TOOL = 'data/online/make_events.py'
CLEAN = Recipe(seconds=150, side=40, noise=0, gray=0, contrast=1)


@pytest.fixture(scope='module')
def videos():
    return [make_video(0, i, CLEAN) for i in range(2)]


def shown(frame, color):
    """Return True if at least a quarter of a square has this color."""
    return (np.abs(np.float32(frame) - color).max(-1) < 2).sum() > 80


def test_events_last_3_to_40_seconds_and_do_not_overlap(videos):
    spans = []
    for frames, events in videos:
        assert 0.9 * 150 * FPS - 1 <= len(frames) <= 1.1 * 150 * FPS
        assert all(one.end < after.start
                   for one, after in zip(events, events[1:]))
        assert events[-1].end <= len(frames)
        spans += [one.end - one.start for one in events]
    assert 3 * FPS <= min(spans) < 8 * FPS and 20 * FPS < max(spans) <= 400
    assert {one.label for _, events in videos for one in events} <= {*CLASSES}


def test_classes_are_shown_in_events_and_else_in_flashes(videos):
    for frames, events in videos:
        for label, hue in HUES.items():
            truth = np.zeros(len(frames), bool)
            for one in events:
                if one.label == label:
                    truth[one.start:one.end] = True
            seen = np.array([shown(frame, color_of(hue))
                             for frame in frames])
            assert seen[truth].all()
            # Each run of frames outside of events is shorter than a second.
            runs = np.split(seen & ~truth, np.flatnonzero(~seen))
            assert max(map(np.sum, runs)) < FPS
        assert any(shown(frame, color_of(hue)) for frame in frames[::5]
                   for hue in CLUTTER_HUES)


def test_writes_videos_and_annotations(run_main, capsys, tmp_path):
    out = tmp_path / 'set'
    options = out, '--videos', 5, '--seconds', 60
    run_main(TOOL, *options)
    with open(out / 'annotations.csv') as file:
        rows = list(csv.DictReader(file))
    subsets = {row['video']: row['subset'] for row in rows}
    assert [*subsets.values()] == ['train'] * 3 + ['val', 'test']
    for i, name in enumerate(subsets):
        want, events = make_video(0, i, Recipe(seconds=60))
        reader = decord.VideoReader(str(out / 'videos' / name))
        assert len(reader) == len(want) and reader.get_avg_fps() == FPS
        got = reader.get_batch(range(len(want))).asnumpy()
        assert np.abs(np.float32(got) - want).mean() < 12
        assert [(float(row['start']) * FPS, float(row['end']) * FPS,
                 row['label']) for row in rows if row['video'] == name] == [
            (one.start, one.end, one.label) for one in events]
    run_main(TOOL, *options)
    assert 'already' in capsys.readouterr().out
    with pytest.raises(SystemExit, match='videos must be at least 5'):
        run_main(TOOL, tmp_path / 'other', '--videos', 4)
