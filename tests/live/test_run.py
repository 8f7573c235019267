# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Runs of a model of features."""
import json
import threading
import time
from contextlib import nullcontext
from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch
from live_fixtures import CLASSES, Hanging, Script
from made_videos import write_at

from mmvidattn import live
from mmvidattn.live.segments import find_segments


def test_events_match_a_detector_on_the_scores(model, clip, tmp_path):
    path = tmp_path / 'events.jsonl'
    run = live.StreamRun(model, clip, path)
    naive = live.EventDetector(CLASSES, on=.3, off=.2, min_duration=.25)
    expected = []
    for d in run:
        events = naive.update(d.time - .25, d.time, d.scores)
        assert (d.events, d.active_since) == (events, naive.active_since)
        expected += events
    expected += naive.finish(7.)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines == expected == list(run.events.recent) != []


def test_slow_machine_drops_the_oldest_steps(model):
    run = live.StreamRun(model, Script(range(90), live=True, wait=0.002))
    steps, largest = [], 0
    for detection in run:
        steps.append(detection.step)
        largest = max(largest, len(run._reader.queue))
        time.sleep(0.03)
    assert run.dropped > 0
    assert largest <= 4
    # The latest steps are not lost, and lost steps are counted.
    assert steps[-1] == 29
    assert len(steps) + run.dropped == 30
    # The session has counted every step.
    assert run.session.num_steps == 30
    assert run.session.num_bad_frames == run.dropped


@pytest.mark.parametrize('memory_steps, num_steps', [(7, 14), (6, 4)])
def test_session_skips_a_gap_shorter_than_the_memory(
        model, monkeypatch, memory_steps, num_steps):
    monkeypatch.setattr(model, 'memory_steps', memory_steps)
    run = live.StreamRun(model, Script([*range(12), *range(30, 42)]))
    assert [d.step for d in run] == [0, 1, 2, 3, 10, 11, 12, 13]
    assert run.missing == 6 and run.session.num_steps == num_steps
    assert run.session.num_bad_frames == (6 if num_steps == 14 else 0)


def test_stop_ends_the_run(model):
    run = live.StreamRun(model, Script(range(10 ** 9)))
    for detection in run:
        if detection.step == 3:
            run.stop()
        assert detection.step < 12
    with pytest.raises(RuntimeError, match='iterated over once'):
        next(iter(run))


@pytest.mark.parametrize('stops', [True, False])
def test_hanging_source_is_abandoned(model, monkeypatch, stops):
    """It is an error, unless the run is stopped."""
    monkeypatch.setattr(live.step_reader, 'STOP_SECONDS', 0.2)
    source = Hanging(range(12))
    run, found = live.StreamRun(model, source), []
    source.patience = 60 if stops else 0.7
    with nullcontext() if stops else pytest.raises(
            ValueError, match='script hangs: no frame came in 0.7'):
        for detection in run:
            found.append(detection.step)
            if stops and detection.step == 3:
                threading.Timer(0.3, run.stop).start()
    assert run.report()['status'].startswith('failed: script') != stops
    assert found == [0, 1, 2, 3]
    assert not source.has_returned
    source.released.set()


def test_waiting_source_does_not_count_as_hanging(model, tmp_path):
    """A source may wait for the run or for the time of its next frame."""
    source = Script(range(30))
    source.patience = 0.3
    for detection in live.StreamRun(model, source):
        time.sleep(0.6 * (detection.step == 2))
    assert detection.step == 9
    for i in range(5):
        cv2.imwrite(str(tmp_path / f'{i}.png'), np.zeros((8, 8, 3)))
    source = live.open_source(tmp_path, realtime=True, fps=4)
    source.patience = 0.1
    assert len(list(live.StreamRun(model, source))) == 5


def test_empty_images_and_non_finite_features_are_bad(model, monkeypatch):
    """Earlier frames replace them; a step of only empty images is missing."""
    run, calls = live.StreamRun(model, Script(range(24))), []
    frames, features_of = run.source._frames, live.FeatureExtractor.features_of

    def sometimes_nan(self, samples):
        calls.append(0)
        return features_of(self, samples) * (
            torch.nan if len(calls) == 3 else 1)

    monkeypatch.setattr(live.FeatureExtractor, 'features_of', sometimes_nan)
    run.source._frames = lambda: (
        replace(frame, image=frame.image[:0])
        if frame.index in (4, 12, 13, 14) else frame for frame in frames())
    with pytest.warns(UserWarning):
        found = list(run)
    assert [d.step for d in found] == [0, 1, 2, 3, 5, 6, 7]
    assert np.isfinite([d.scores for d in found]).all()
    assert (run.missing, run.session.num_bad_frames) == (1, 2)
    assert run.report()['bad_frames'] == 4 + 1


def test_sessions_sample_the_long_memory_as_the_dataset(files):
    for stretch in True, False:
        scorer = live.FeatureStreamModel(*files, cfg_options={
            'test_dataloader.dataset.stretch_long_memory': stretch}
        ).new_scorer(12)
        assert scorer.session.step.stretch_long_memory is stretch


@pytest.fixture(scope='module')
def eager(files):
    """Model in which each class is an action all the time."""
    return live.FeatureStreamModel(
        *files, events=dict(on=1e-5, off=1e-6, min_duration=.25))


def test_gaps_of_a_file_are_skipped_and_end_segments(eager, tmp_path):
    path = write_at(tmp_path / 'gap.mkv', [
        *np.arange(20) / 10, *16 + np.arange(20) / 10])
    times = [round(x.index / 10, 1) for x in live.open_source(path)]
    assert times == [round(t / 10, 1) for t in (*range(20), *range(160, 180))]
    found = find_segments(live.StreamRun(eager, path),
                          eager.new_event_detector(), 'gap')
    assert {one.start < 10 for one in found} == {True, False}
    assert all(one.end < 3 or one.start > 15 for one in found)


def test_joined_recordings_restart(eager, tmp_path):
    path = write_at(tmp_path / 'part.ts', np.arange(100) / 25, 'mpeg2video',
                    25, 25)
    both = tmp_path / 'two.ts'
    both.write_bytes(2 * path.read_bytes())
    run, lines = live.StreamRun(eager, both), []
    run.log = lines.append
    found = list(run)
    line, = lines
    assert 'jumped back' in line
    # Time goes on, and the actions in progress end.
    assert 7 < found[-1].time < 9
    cut = [e for d in found for e in d.events if e.get('cut')]
    assert len(cut) == len(CLASSES) - 1
    assert all(3 < e['end'] < 5 for e in cut)
