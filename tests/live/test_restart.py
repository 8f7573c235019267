# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A run that is killed or stopped, and the run that goes on."""
import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from live_fixtures import Hook, wait_until

from mmvidattn.live import (
    LiveModel,
    OnlineDetector,
    Run,
    open_source,
    state_file,
    step_reader,
)
from mmvidattn.live.events import EventLog, read_events
from mmvidattn.live.sinks import messages
from mmvidattn.live.sinks.messages import WebhookSink
from mmvidattn.live.sinks.segments import SegmentSink
from mmvidattn.live.state_file import StateFile
from mmvidattn.live.step_reader import StepReader
from mmvidattn.sources import Frame, RecordedSource, Source

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
    assert list(run) == [] and run.health.is_ready and not run.health.problem
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


def test_a_clock_that_went_back_is_no_gap(model, tmp_path):
    list(Run(model, Camera(24), **options(tmp_path), duration=1.))
    state = torch.load(tmp_path / 'state', weights_only=True)
    state['ended'] = False
    state['clock'] += 3600
    torch.save(state, tmp_path / 'state')
    run = Run(model, Camera(36), **options(tmp_path))
    assert run.resumed.endswith('after a gap of 0.0 s')
    assert next(iter(run)).step >= 4


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
    assert run.report()['status'] == 'ended' and run.health.is_up
    ends = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(event['time'] <= 10 for event in ends)

    class Stalling(Camera):

        def _frames(self):
            yield from super()._frames()
            self._stopped.wait(60)

    monkeypatch.setattr(step_reader, 'GRACE_SECONDS', 0.1)
    began = time.monotonic()
    run = Run(model, Stalling(12), duration=1.2)
    assert [d.step for d in run] == list(range(4))
    assert time.monotonic() - began < 8


def test_a_duration_goes_on_after_a_restart(model, monkeypatch):
    """5 of 5.2 seconds are over; the source hangs, and is soon too late."""

    class Stalling(Source):
        patience = 3.

        def _frames(self):
            self._stopped.wait(60)
            yield from ()

    monkeypatch.setattr(step_reader, 'GRACE_SECONDS', 0.1)
    source = Stalling('camera', 10., live=True)
    source.start_at(50)
    assert list(StepReader(source, 2., 1, queue_size=4, duration=5.2)) == []
    assert source.status == 'ended'


def test_states_are_written_at_intervals(tmp_path, monkeypatch):
    now = 0.
    monkeypatch.setattr(state_file.time, 'monotonic', lambda: now)
    file = StateFile(tmp_path / 'state', 10., dict(rate=2))
    written = []
    for now in range(0, 35, 2):
        file.write_if_due(lambda: written.append(now) or {})
    assert written == [10, 20, 30]


@pytest.mark.parametrize('duration, frames', [
    (1.2, 14), (1.24, 15), (1.25, 15)])
def test_a_duration_is_of_whole_frames(model, duration, frames):
    run = Run(model, Recording(), duration=duration)
    assert len(list(run)) == frames // 3


def test_a_state_that_cannot_be_written_is_named(model, tmp_path,
                                                 monkeypatch):
    run = Run(model, Recording(60), **options(tmp_path, state_seconds=1e-6))

    def full(*args):
        raise OSError('no space left')

    monkeypatch.setattr(state_file, 'write_atomically', full)
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


def post(model, source, folder, url):
    """Run, and post the events, in a process that is killed."""
    run = Run(model, source, **options(folder, state_seconds=0.05))
    run.add_sink(WebhookSink(url, run, folder / 'sent'), lambda line: None)
    for _ in run:
        time.sleep(0.002)


@pytest.mark.parametrize('source', [Recording, Camera])
@pytest.mark.parametrize('kills', [
    1, pytest.param(30, marks=pytest.mark.slow)])
def test_killed_between_an_event_and_its_message(
        model, tmp_path, monkeypatch, record_property, source, kills):
    """Each event of the file is delivered, under one key."""
    record_property('times', kills)
    monkeypatch.setattr(messages, 'FIRST_DELAY', 0.02)
    monkeypatch.setattr(messages, 'MAX_DELAY', 0.02)
    hook, path = Hook(), tmp_path / 'events.jsonl'
    context = multiprocessing.get_context('fork')
    source, rng = source(120 * (kills + 1)), random.Random(kills)
    unsent = 0
    try:
        for _ in range(kills):
            # Some are delivered, then the receiver is out of order.
            hook.answers = [(204, {})] * rng.randint(0, 3) + (
                [(503, {})] * 9999)
            num_before = num_lines(path)
            process = context.Process(target=post, args=(
                model, source, tmp_path, f'http://{hook.host}/'))
            process.start()
            wait_until(lambda: num_lines(path) > num_before + 3
                       and len(hook.answers) < 9999, 90)
            time.sleep(rng.uniform(0, 0.1))
            os.kill(process.pid, signal.SIGKILL)
            process.join(60)
            sent = json.loads((tmp_path / 'sent').read_bytes())['sent']
            unsent += sent + 1 < num_lines(path)
        hook.answers = []
        post(model, source, tmp_path, f'http://{hook.host}/')
    finally:
        hook.close()
    assert unsent, 'no event was undelivered when its process was killed'
    events = [json.loads(line) for line in path.read_text().splitlines()]
    found = {}
    for event, key in zip(hook.events, hook.keys):
        found.setdefault(event['id'], []).append((event, key))
    assert sorted(found) == [event['id'] for event in events]
    for event in events:
        first, *others = found[event['id']]
        assert first[0] == dict(event, source=source.name)
        assert all(other == first for other in others)


def num_lines(path):
    return path.read_bytes().count(b'\n') if path.exists() else 0


@contextmanager
def small_disk(folder, size):
    """Mount a small file system in memory, which needs root."""
    folder.mkdir()
    command = ['mount', '-t', 'tmpfs', '-o', f'size={size}', 'tmpfs', folder]
    mounted = subprocess.run(
        command, capture_output=True, text=True, timeout=30)
    if mounted.returncode:
        pytest.skip(f'cannot mount a tmpfs: {mounted.stderr.strip()}')
    try:
        yield
    finally:
        subprocess.run(['umount', '-l', folder], check=True, timeout=30)


def fill(path):
    """Write a file until the disk is full."""
    with open(path, 'ab', buffering=0) as file, pytest.raises(OSError):
        while True:
            file.write(bytes(4096))


def num_handles():
    return len(os.listdir('/proc/self/fd'))


def num_frames(path):
    """Count the frames of a video that can be decoded."""
    video, number = cv2.VideoCapture(str(path)), 0
    while video.read()[0]:
        number += 1
    return number


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir('/proc/self/fd'),
                    reason='counts open files in /proc')
def test_a_disk_that_fills_and_empties_ten_times(model, tmp_path,
                                                 record_property):
    """Only clips that are due while the disk is full are lost."""
    record_property('times', 10)
    cycle, disk, lines = 240, tmp_path / 'disk', []
    events = [tmp_path / 'events.jsonl', tmp_path / 'wanted.jsonl']
    list(Run(model, Recording(10 * cycle), events[1]))
    before = num_handles()
    with small_disk(disk, 2**26):
        run = Run(model, Recording(10 * cycle), events[0])
        sink = SegmentSink(disk, run, 0, 0)
        run.add_sink(sink, lines.append)
        handles = []
        for step, _ in enumerate(run):
            if step % (cycle // 3) == 0:
                # It is full for a third of each cycle.
                fill(disk / 'filler')
            elif step % (cycle // 3) == cycle // 9:
                (disk / 'filler').unlink()
            handles.append(num_handles())
        (disk / 'filler').unlink(missing_ok=True)
        assert events[0].read_bytes() == events[1].read_bytes()
        ends = [event for event in map(
            json.loads, events[0].read_text().splitlines())
            if event['event'] == 'end']
        clips = {sink.path(event['start_id']): round(12 * (
            event['end'] - event['start'])) for event in ends}
        found = sorted(disk.iterdir())
        lost = run.sink_losses()[sink.name]
        print(f'{len(ends)} clips: {len(found)} written, {lost} lost; '
              f'handles: {before} before, at most {max(handles)}, '
              f'{num_handles()} after')
        assert len(found) + lost == len(ends) and lost >= 10
        assert len(found) >= 10 and set(found) <= set(clips)
        assert [num_frames(path) for path in found] == [
            clips[path] for path in found]
        # The file of events, and a clip, which is read while it is finished.
        assert max(handles) <= before + 3 and num_handles() == before
        assert any('No space left' in line for line in lines), lines
