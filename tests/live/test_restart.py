# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Runs that resume after they were killed or stopped."""
import json
import multiprocessing
import os
import random
import shutil
import signal
import time
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from live_fixtures import Script, noise

from mmvidattn.live import FeatureStreamModel, StreamRun, run_files
from mmvidattn.live.run_files import EventLog, read_events
from mmvidattn.sources import RecordedSource


class Recording(RecordedSource):

    def __init__(self, num_frames=120):
        self.num_frames = num_frames
        super().__init__('recording', 12, False)

    def _read(self, index):
        return noise(index)


@pytest.fixture(scope='module')
def model(files):
    """Model with thresholds that give many events."""
    model = FeatureStreamModel(*files)
    scores = np.array([d.scores[1:] for d in StreamRun(model, Recording())])
    off, on = np.quantile(scores, [.7, .8])
    model._event_options = dict(on=float(on), off=float(off), min_duration=.25)
    return model


def options(folder, **more):
    return dict(events_file=folder / 'events.jsonl',
                state_file=folder / 'state', **more)


@pytest.fixture(scope='module')
def uninterrupted(model, tmp_path_factory):
    """Events file, detections and folder of an uninterrupted run."""
    folder = tmp_path_factory.mktemp('uninterrupted')
    results = list(StreamRun(model, Recording(), **options(folder)))
    data = (folder / 'events.jsonl').read_bytes()
    assert data.count(b'\n') > 3
    return data, results, folder


def work(model, folder):
    for _ in StreamRun(model, Recording(),
                       **options(folder, state_seconds=0.02)):
        time.sleep(0.002)


@pytest.mark.parametrize('times', [
    3, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_random(model, uninterrupted, tmp_path, times):
    """A run may end before it was killed often enough: repeat."""
    context, rng = multiprocessing.get_context('fork'), random.Random(0)
    kills = number = 0
    while kills < times:
        number += 1
        assert number <= 2 * times, 'the runs end before they are killed'
        folder = tmp_path / str(number)
        folder.mkdir()
        while True:
            process = context.Process(target=work, args=(model, folder))
            process.start()
            process.join(rng.uniform(0.02, 0.2) if kills < times else 60)
            if not process.is_alive():
                break
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            kills += 1
        assert process.exitcode == 0
        assert (folder / 'events.jsonl').read_bytes() == uninterrupted[0]


def test_stop_keeps_actions_in_progress(model, uninterrupted, tmp_path):
    done = 0
    for _ in range(3):
        run = StreamRun(model, Recording(), **options(tmp_path))
        for _ in run:
            done += 1
            if done in (10, 20):
                run.stop()
    assert (tmp_path / 'events.jsonl').read_bytes() == uninterrupted[0]
    # After the end, another run changes nothing.
    run = StreamRun(model, Recording(), **options(tmp_path))
    assert 'had ended at 10.00 s' in run.resumed
    assert list(run) == [] and run.is_ready and not run.problem
    assert run.report()['status'] == 'ended'
    assert (tmp_path / 'events.jsonl').read_bytes() == uninterrupted[0]
    assert run.events.recent[-1] == json.loads(
        uninterrupted[0].splitlines()[-1])


def test_failed_run_resumes_from_its_last_state(model, uninterrupted,
                                                tmp_path):
    """The ends of actions at the failure are taken back."""
    started = next(d for d in uninterrupted[1] if any(
        event['event'] == 'start' for event in d.events))
    last = 3 * started.step + 2

    class Failing(Recording):

        def _read(self, index):
            if index > last:
                raise OSError('lost')
            return super()._read(index)

    more = options(tmp_path, state_seconds=1e-6)
    with pytest.raises(ValueError, match=f'off: {last + 1} of 120'):
        list(StreamRun(model, Failing(), **more))
    path = tmp_path / 'events.jsonl'
    assert json.loads(path.read_text().splitlines()[-1])['cut']
    list(StreamRun(model, Recording(), **more))
    assert path.read_bytes() == uninterrupted[0]


@pytest.mark.parametrize('away', [-3600, 3600], ids=['clock-set-back', 'hour'])
def test_live_source_resumes_after_a_gap(model, tmp_path, away):
    """Events after the saved state are neither lost nor repeated."""
    def start(num_frames):
        return StreamRun(model, Script(
            range(num_frames), live=True, wait=.004), **options(tmp_path))

    run = start(120)
    state = torch.load(tmp_path / 'state', weights_only=True)
    next(d for d in run if d.step >= 30)
    path = tmp_path / 'events.jsonl'
    before = path.read_bytes()
    assert before.count(b'\n') > 1
    # Simulate a process that was killed long after the state was saved, while
    # it wrote a line.
    path.write_bytes(before + b'{"id": ')
    state['clock'] -= away
    torch.save(state, tmp_path / 'state')
    run = start(180)
    assert 'after a gap of ' in run.resumed
    first = next(steps := iter(run)).step
    # The gap is measured by the clock, from the time of the state.
    gap = float(run.resumed.split()[-2])
    known = json.loads(before.splitlines()[-1])['time']
    assert gap >= max(0, away)
    assert first / 4 == pytest.approx(max(gap, known), abs=2)
    assert run.missing >= first - 1
    list(steps)
    assert path.read_bytes().startswith(before)
    events = [*map(json.loads, path.read_text().splitlines())]
    assert [event['id'] for event in events] == list(range(len(events)))
    # Each action starts once and then ends once.
    started = {}
    for event in events:
        if event['event'] == 'start':
            assert event['index'] not in started
            started[event['index']] = event['id']
        else:
            assert started.pop(event['index']) == event['start_id']
    assert not started


def test_unwritable_state_is_a_warning(model, tmp_path, monkeypatch):
    run = StreamRun(model, Recording(60),
                    **options(tmp_path, state_seconds=1e-6))
    monkeypatch.setattr(run_files, 'write_atomically',
                        Mock(side_effect=OSError('no space left')))
    with pytest.warns(UserWarning, match='cannot write .*no space left'):
        with pytest.raises(OSError, match='no space'):
            list(run)
    assert run.report()['steps'] == 20


@pytest.mark.parametrize('name, change, error', [
    ('state', lambda data: b'noise', 'is not the state of a run'),
    ('state', lambda data: data[:-99], 'is not the state of a run'),
    ('events.jsonl', lambda data: data[:-3],
     'must have events up to byte .* it is another file, or has been'),
    ('events.jsonl', lambda data: None, 'No such file'),
    ('other', None, "its source must be .*clip.mp4', got 'recording'; delete")
])
def test_rejects_damaged_files_and_other_sources(
        model, uninterrupted, clip, tmp_path, name, change, error):
    shutil.copytree(uninterrupted[2], tmp_path, dirs_exist_ok=True)
    path, source = tmp_path / name, clip
    if change is not None:
        data, source = change(path.read_bytes()), Recording()
        path.unlink() if data is None else path.write_bytes(data)
    before = (tmp_path / 'state').read_bytes()
    with pytest.raises(ValueError, match=error):
        StreamRun(model, source, **options(tmp_path))
    assert (tmp_path / 'state').read_bytes() == before


def test_event_log_is_synced_and_continues_with_any_characters(
        tmp_path, monkeypatch):
    sizes = []
    monkeypatch.setattr(os, 'fsync', lambda descriptor: sizes.append(
        os.fstat(descriptor).st_size))
    path = tmp_path / 'new' / 'events.jsonl'
    first, second, third = (
        [{'id': i, 'class': 'ä\u2028\x85\x0c\r\nx'}] for i in range(3))
    log = EventLog(path)
    log.write(first)
    # Before it is closed.
    assert read_events(path, 0) == (first, size := log.size)
    log.write(second)
    log.close()
    assert sizes == [size, path.stat().st_size]
    assert read_events(path, size) == (second, sizes[1])
    log = EventLog(path, size)
    assert list(log.recent) == first
    # A long run keeps only the latest ones.
    assert log.recent.maxlen == run_files.MAX_RECENT
    log.write(third)
    log.close()
    assert read_events(path, 0)[0] == first + third
    with pytest.raises(ValueError, match='must have events up to byte 5'):
        EventLog(path, 5)
