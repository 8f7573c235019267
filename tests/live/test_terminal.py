# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import io

import numpy as np
from live_fixtures import FakeRun
from rich.console import Console

from mmvidattn.live import Detection
from mmvidattn.live.terminal import view

CLASSES = 'background', 'jump', 'run', 'swim'


def shown(run, latest=None):
    """Return the lines of the panel, without its frame and margins."""
    console = Console(width=100, file=io.StringIO())
    console.print(view(run, latest))
    return [line.strip('│ ') for line in console.file.getvalue().splitlines()]


def test_view_has_scores_from_highest_to_lowest_as_bars():
    scores = np.array([.9, .25, .5, 0.])
    title, *rows, report, _ = shown(
        FakeRun('gate', CLASSES),
        Detection(0, .25, scores, scores[None], (), [], {}))
    assert 'gate: running' in title
    assert [row.split()[0] for row in rows] == ['run', 'jump', 'swim']
    assert [row.split()[-1] for row in rows] == ['0.50', '0.25', '0.00']
    # A bar is 30 characters wide at a score of 1.
    assert [row.count('█') for row in rows] == [15, 7, 0]
    assert report.startswith('1 steps, 0 dropped, 0 missing')


def test_view_without_a_step_has_the_latest_four_events():
    run = FakeRun('gate', CLASSES)
    for second in range(5):
        run.events.write(
            [{'event': 'start', 'class': 'jump', 'start': second}])
    run.events.write([{'event': 'end', 'class': 'jump', 'start': 4,
                       'end': 4.5, 'peak': .75}])
    _, *rows, _ = shown(run)
    assert rows == [
        'jump started at 2.00 s', 'jump started at 3.00 s',
        'jump started at 4.00 s',
        'jump from 4.00 to 4.50 s, peak score 0.75']
