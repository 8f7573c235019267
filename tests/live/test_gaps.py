# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Long gaps, and jumps back, in the time of a source."""
import numpy as np
import pytest
from live_fixtures import CLASSES
from made_videos import write_at

from mmvidattn.live import FeatureStreamModel, StreamRun
from mmvidattn.live.segments import find_segments
from mmvidattn.sources import VideoFile, open_source


@pytest.fixture(scope='module')
def model(files):
    return FeatureStreamModel(
        *files, events=dict(on=1e-5, off=1e-6, min_duration=.25))


def run_all(model, source):
    """Return the detections, their events, and the lines of a run."""
    run, lines = StreamRun(model, source), []
    run.log = lines.append
    found = list(run)
    return found, [e for d in found for e in d.events], lines


@pytest.mark.parametrize('gap, restarts', [(14., True), (6., False)])
def test_actions_and_state_end_at_a_long_gap(
        model, tmp_path, gap, restarts):
    times = [*np.arange(20) / 10, *2 + gap + np.arange(20) / 10]
    path = write_at(tmp_path / 'gap.mkv', times)
    found, events, lines = run_all(model, path)
    cut = [e for e in events if e['event'] == 'end' and e.get('cut')]
    assert bool(lines) == restarts
    if not restarts:
        assert not cut
        return
    line, = lines
    assert f'gap of {gap:g}'[:8] in line and 'gap.mkv' in line
    assert len(cut) == len(CLASSES) - 1
    assert all(2 <= e['end'] < 3 for e in cut)
    # No step is in the gap, and actions start anew after it.
    assert not [d for d in found if 3 < d.time < 1.5 + gap]
    starts = {e['start'] for e in events if e['event'] == 'start'}
    assert len(starts) == 2 and max(starts) >= 1.5 + gap


def test_segments_of_a_file_end_at_a_long_gap(model, tmp_path):
    path = write_at(tmp_path / 'gap.mkv', [
        *np.arange(20) / 10, *16 + np.arange(20) / 10])
    found = find_segments(StreamRun(model, path), model.new_event_detector(),
                          'gap')
    assert {one.start < 10 for one in found} == {True, False}
    assert all(one.end < 3 or one.start > 15 for one in found)


def test_joined_recordings_restart(model, tmp_path):
    path = write_at(tmp_path / 'part.ts', np.arange(100) / 25, 'mpeg2video',
                    25, 25)
    both = tmp_path / 'two.ts'
    both.write_bytes(2 * path.read_bytes())
    found, events, lines = run_all(model, both)
    line, = lines
    assert 'jumped back' in line
    # Time goes on.
    assert 7 < found[-1].time < 9
    cut = [e for e in events if e['event'] == 'end' and e.get('cut')]
    assert len(cut) == len(CLASSES) - 1


def test_frames_keep_their_place_after_a_gap(tmp_path):
    path = write_at(tmp_path / 'gap.mkv', [0, .1, .2, 20, 20.1])
    frames = [*open_source(path)]
    assert isinstance(open_source(path), VideoFile)
    assert [round(f.index / 10, 1) for f in frames] == [0, .1, .2, 20, 20.1]
