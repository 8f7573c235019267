# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A run that is killed or stopped, and the run that goes on."""
import json
import multiprocessing
import os
import random
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from mmvidattn.live import LiveModel, OnlineDetector, Run, open_source
from mmvidattn.live import run as live_run
from mmvidattn.live.events import EventLog, read_events
from mmvidattn.live.sources import RecordedSource, Source
from mmvidattn.live.steps import Frame

FRAMES = 240


def image_of(index):
    """Bright and dark ones, a second each."""
    rng = np.random.default_rng(index)
    level = np.random.default_rng(index // 10).integers(0, 200)
    return (rng.integers(0, 50, (64, 64, 3)) + level).astype(np.uint8)


class Recording(RecordedSource):

    def __init__(self, num_frames=FRAMES):
        self.num_frames = num_frames
        super().__init__('recording', 12, False)

    def _read(self, index):
        return image_of(index)


@pytest.fixture(scope='module')
def model(files):
    """With thresholds at which there are many events."""
    model = LiveModel(*files)
    scores = np.array([d.scores[1:] for d in Run(model, Recording())])
    off, on = np.quantile(scores, [.7, .8])
    model._event_options = dict(
        on=float(on), off=float(off), min_duration=.25)
    return model


class Camera(Source):
    """A live one; its frames are there at once."""

    def __init__(self, num_frames):
        self.num_frames = num_frames
        super().__init__('camera', 12, True)

    def _frames(self):
        for i in range(self.num_frames):
            time.sleep(0.004)
            yield Frame(image_of(i), i, 0., time.monotonic())


def options(folder, **more):
    return dict(events_file=folder / 'events.jsonl',
                state_file=folder / 'state', **more)


@pytest.fixture(scope='module')
def whole(model, tmp_path_factory):
    """The events of a run that nothing interrupts, its detections, and the
    folder of its files."""
    folder = tmp_path_factory.mktemp('whole')
    found = list(Run(model, Recording(), **options(folder)))
    path = folder / 'events.jsonl'
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(events) > 3
    assert [event['id'] for event in events] == list(range(len(events)))
    return path.read_bytes(), found, folder


def test_goes_on_wherever_it_was(model, whole, tmp_path, monkeypatch):
    """Copies of the files at some moments are as a kill leaves them."""
    monkeypatch.setattr(os, 'fsync', lambda file: None)
    moments = 0, 1, 40
    events, state = tmp_path / 'events.jsonl', tmp_path / 'state'
    run = Run(model, Recording(), **options(tmp_path, state_seconds=1e-6))
    shutil.copytree(tmp_path, tmp_path / 'at0')
    for number, _ in enumerate(run, 1):
        # The state is that of the step before.
        if number in moments:
            folder = tmp_path / f'at{number}'
            folder.mkdir()
            shutil.copy(state, folder)
            shutil.copy(events, folder)
    assert events.read_bytes() == whole[0]
    for number in moments:
        folder = tmp_path / f'at{number}'
        with open(folder / 'events.jsonl', 'ab') as file:
            # A line that was not finished.
            file.write(b'{"id": 9')
        run = Run(model, Recording(), **options(folder))
        found = list(run)
        assert run.resumed.startswith('goes on at ')
        assert len(found) == len(whole[1]) - max(0, number - 1)
        for got, wanted in zip(found[::-1], whole[1][::-1]):
            assert got.step == wanted.step
            np.testing.assert_array_equal(got.scores, wanted.scores)
        assert (folder / 'events.jsonl').read_bytes() == whole[0]
        report = run.report()
        assert (report['steps'], report['missing']) == (len(whole[1]), 0)


def work(model, folder):
    for _ in Run(model, Recording(), **options(folder, state_seconds=0.02)):
        time.sleep(0.002)


def kill_again_and_again(model, folder, times, seed):
    """Go on with a run, and kill it, so many times; then let it end."""
    context = multiprocessing.get_context('fork')
    rng = random.Random(seed)
    kills = 0
    while True:
        process = context.Process(target=work, args=(model, folder))
        process.start()
        process.join(rng.uniform(0.02, 0.4) if kills < times else 60)
        if not process.is_alive():
            assert process.exitcode == 0
            return kills
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        kills += 1


@pytest.mark.parametrize('times', [
    3, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_random(model, whole, tmp_path, times):
    """Of as many runs as it takes."""
    kills = number = 0
    while kills < times:
        folder = tmp_path / str(number)
        folder.mkdir()
        kills += kill_again_and_again(
            model, folder, times - kills, seed=number)
        assert (folder / 'events.jsonl').read_bytes() == whole[0]
        number += 1
        assert number < 2 * times, 'the runs end before they are killed'


def test_a_file_goes_on_where_it_was(model, clip, tmp_path):
    list(Run(model, clip, tmp_path / 'whole.jsonl'))
    run = Run(model, clip, **options(tmp_path))
    for detection in run:
        if detection.step == 13:
            run.stop()
    run = Run(model, clip, **options(tmp_path))
    steps = [detection.step for detection in run]
    assert steps[0] in range(14, 19) and steps[-1] == 27
    assert (tmp_path / 'events.jsonl').read_bytes() == (
        tmp_path / 'whole.jsonl').read_bytes()


def test_a_stop_leaves_the_actions_open(model, whole, tmp_path):
    done = 0
    for _ in range(3):
        run = Run(model, Recording(), **options(tmp_path))
        for _ in run:
            done += 1
            if done in (20, 40):
                run.stop()
    assert (tmp_path / 'events.jsonl').read_bytes() == whole[0]
    # It has ended: there is nothing to do, and nothing is changed.
    run = Run(model, Recording(), **options(tmp_path))
    assert 'had ended at 20.00 s' in run.resumed
    assert list(run) == [] and run.is_ready and not run.problem
    assert run.report()['status'] == 'ended'
    assert (tmp_path / 'events.jsonl').read_bytes() == whole[0]
    assert list(run.events.recent)[-1]['id'] == len(
        whole[0].splitlines()) - 1


def test_thresholds_go_on(model, tmp_path):
    run = Run(model, Recording(24), **options(tmp_path))
    name = run.classes[1]
    run.set_threshold(name, .9)
    for _ in run:
        run.stop()
    changed = run.thresholds()['changed']
    assert changed[name][0] == .9
    run = Run(model, Recording(24), **options(tmp_path))
    assert run.thresholds()['changed'] == changed
    (tmp_path / 'state').unlink()
    run = Run(model, Recording(24), **options(tmp_path))
    assert run.thresholds()['changed'] == {}


@pytest.mark.parametrize('away', [0, 3600], ids=['short', 'an-hour'])
def test_a_live_source_says_the_gap(model, tmp_path, away):
    """Events that came after the state are neither lost nor doubled."""
    run = Run(model, Camera(240), **options(tmp_path))
    shutil.copy(tmp_path / 'state', tmp_path / 'early')
    for detection in run:
        if detection.step == 60:
            break
    path = tmp_path / 'events.jsonl'
    before = path.read_bytes()
    assert before.count(b'\n') > 1
    # Killed long after its last state, in the middle of a line.
    os.replace(tmp_path / 'early', tmp_path / 'state')
    path.write_bytes(before + b'{"id": ')
    state = torch.load(tmp_path / 'state', weights_only=True)
    state['clock'] -= away
    torch.save(state, tmp_path / 'state')
    run = Run(model, Camera(360), **options(tmp_path))
    assert 'after a gap of ' in run.resumed
    first = next(steps := iter(run)).step
    # By the clock, from the state's time on.
    gap = float(run.resumed.split()[-2])
    known = json.loads(before.splitlines()[-1])['time']
    assert gap >= away
    assert first / 4 == pytest.approx(max(gap, known), abs=2)
    assert run.missing >= first - 1
    list(steps)
    data = path.read_bytes()
    assert data.startswith(before)
    events = [json.loads(line) for line in data.splitlines()]
    assert [event['id'] for event in events] == list(range(len(events)))
    check_pairs(events)


def check_pairs(events):
    """Each action starts and ends once, in this order."""
    open_ = {}
    for event in events:
        if event['event'] == 'start':
            assert event['index'] not in open_
            open_[event['index']] = event
        else:
            start = open_.pop(event['index'])
            assert event['start_id'] == start['id']
            assert event['start'] == start['start'] < event['end']
    assert not open_


def test_clip_models_go_on(clip_files, clip, tmp_path):
    """Their windows are read again."""
    wanted = list(OnlineDetector(*clip_files, clip))
    run = OnlineDetector(*clip_files, clip, **options(tmp_path))
    half = len(wanted) // 2
    for number, _ in enumerate(run, 1):
        if number == half:
            break
    run = OnlineDetector(*clip_files, clip, **options(tmp_path))
    found = list(run)
    assert len(found) == len(wanted) - half
    for got, want in zip(found, wanted[half:]):
        np.testing.assert_allclose(got.scores, want.scores, atol=1e-5)


def test_duration(model, tmp_path, monkeypatch):
    """It ends the source; one that stalls is ended by the clock."""
    path = tmp_path / 'events.jsonl'
    run = Run(model, Recording(), path, duration=10)
    assert [d.step for d in run] == list(range(40))
    assert run.report()['status'] == 'ended' and run.is_up
    ends = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(event['time'] <= 10 for event in ends)

    class Stalling(Camera):

        def _frames(self):
            yield from super()._frames()
            self._stopped.wait(60)

    monkeypatch.setattr(live_run, 'GRACE_SECONDS', 0.1)
    began = time.monotonic()
    run = Run(model, Stalling(12), duration=1.2)
    assert [d.step for d in run] == list(range(4))
    assert time.monotonic() - began < 8


def test_a_state_that_cannot_be_written_is_named(model, tmp_path,
                                                 monkeypatch):
    run = Run(model, Recording(60), **options(tmp_path, state_seconds=1e-6))

    def full(*args):
        raise OSError('no space left')

    monkeypatch.setattr(live_run, 'write_state', full)
    with pytest.warns(UserWarning, match='cannot write .*no space left'):
        with pytest.raises(OSError, match='no space'):
            list(run)
    assert run.report()['steps'] == 20


@pytest.mark.parametrize('change, error', [
    (lambda state, events: state.write_bytes(b'noise'), 'is no state of a'),
    (lambda state, events: state.write_bytes(state.read_bytes()[:-99]),
     'is no state of a run'),
    (lambda state, events: events.write_bytes(events.read_bytes()[:-3]),
     'must have events up to byte .* it is another file, or has been'),
    (lambda state, events: events.unlink(), 'No such file'),
])
def test_files_that_do_not_fit(model, whole, tmp_path, change, error):
    shutil.copytree(whole[2], tmp_path, dirs_exist_ok=True)
    change(tmp_path / 'state', tmp_path / 'events.jsonl')
    with pytest.raises(ValueError, match=error):
        Run(model, Recording(), **options(tmp_path))


def test_state_of_another_source(model, clip, tmp_path):
    Run(model, Recording(), **options(tmp_path))
    before = (tmp_path / 'state').read_bytes()
    with pytest.raises(ValueError, match="its source must be .*clip.mp4', got "
                       "'recording'; delete it"):
        Run(model, clip, **options(tmp_path))
    assert (tmp_path / 'state').read_bytes() == before


@pytest.mark.parametrize('name', ['state_seconds', 'duration'])
def test_bad_options(model, tmp_path, name):
    with pytest.raises(ValueError, match=f'{name} must be a positive'):
        Run(model, Recording(), **options(tmp_path), **{name: 0})
    assert list(tmp_path.iterdir()) == []


def test_sources_start_anywhere(clip, tmp_path):
    frames = list(open_source(clip))
    source = open_source(clip)
    source.start_at(50)
    rest = list(source)
    assert [f.index for f in rest] == list(range(50, 84))
    np.testing.assert_array_equal([f.image for f in rest],
                                  [f.image for f in frames[50:]])
    source = Camera(3)
    source.start_at(50)
    assert [f.index for f in source] == [50, 51, 52]


def test_event_log_goes_on(tmp_path):
    path = Path(tmp_path / 'events.jsonl')
    log = EventLog(path)
    log.write([dict(id=0), dict(id=1, name='ä')])
    size = log.size
    log.write([dict(id=2)])
    log.close()
    assert read_events(path, size) == ([dict(id=2)], path.stat().st_size)
    log = EventLog(path, size)
    assert list(log.recent) == [dict(id=0), dict(id=1, name='ä')]
    log.write([dict(id=3)])
    log.close()
    assert [json.loads(line)['id'] for line in path.read_text(
        'utf-8').splitlines()] == [0, 1, 3]
    with pytest.raises(ValueError, match='must have events up to byte 5'):
        EventLog(path, 5)
