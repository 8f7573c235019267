# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Marks of events, stored in a file."""
import json
import multiprocessing
import resource
import signal
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest
from live_fixtures import FakeRun

from mmvidattn.datasets.annotations.custom.marks_csv import Mark, read_marks
from mmvidattn.live import marks as marks_module
from mmvidattn.live.marks import EventMarks, MarkError

CLASSES = 'background', 'jump', 'run'
END = {'event': 'end', 'class': 'jump', 'index': 1, 'start': 1 / 3, 'end': 2.,
       'peak': .75, 'start_id': 4}
RIGHT = {'mark': 'right', 'class': 'jump', 'start': 1 / 3}
MISSED = dict(mark='missed', label='run', start=5, end=6.5)


def make_run(name='day/1.mp4', began=None):
    run = FakeRun(name, CLASSES)
    run.began = began
    run.events.write([dict(END, event='start'), END,
                      dict(END, start=9., event='start')])
    return run


@pytest.fixture
def marks(tmp_path):
    return EventMarks(tmp_path / 'marks.csv', [make_run(), make_run('2.mp4')])


def shown(marks, source=0):
    return [(one['mark'], one['label'], one['detected'], one['start'])
            for one in marks.state(source)['marks']]


def test_marks_are_in_the_file_at_once(marks):
    assert not marks.path.exists() and marks.revision == 0
    marks.change(0, RIGHT)
    assert read_marks(marks.path) == [
        Mark('day/1.mp4', 1 / 3, 2., 'jump', 'right', 'jump', .75)]
    marks.change(1, dict(RIGHT, mark='wrong'))
    marks.change(0, MISSED)
    marks.change(0, dict(RIGHT, mark='class', label='run'))
    assert read_marks(marks.path) == [
        Mark('day/1.mp4', 1 / 3, 2., 'run', 'class', 'jump', .75),
        Mark('2.mp4', 1 / 3, 2., 'jump', 'wrong', 'jump', .75),
        Mark('day/1.mp4', 5., 6.5, 'run', 'missed')]
    assert marks.revision == 4
    # The same class as before is the mark right.
    marks.change(0, dict(RIGHT, mark='class', label='jump'))
    assert shown(marks) == [('right', 'jump', 'jump', 1 / 3),
                            ('missed', 'run', '', 5)]


def test_marks_are_removed(marks):
    for message in RIGHT, MISSED:
        marks.change(0, message)
    marks.change(0, dict(RIGHT, mark='none'))
    assert shown(marks) == [('missed', 'run', '', 5)]
    marks.change(0, {'mark': 'none', 'class': '', 'label': 'run', 'start': 5})
    assert shown(marks) == [] and read_marks(marks.path) == []
    # Repeating it changes nothing.
    marks.change(0, dict(RIGHT, mark='none'))


def test_marks_survive_a_restart(marks):
    marks.change(0, RIGHT)
    marks.change(0, MISSED)
    again = EventMarks(marks.path, [make_run(), make_run('2.mp4')])
    assert again.state(0) == dict(marks.state(0), revision=0)
    assert shown(again, 1) == []
    # The mark of an event that is not detected any more can be changed.
    again._runs[0].events.recent.clear()
    again.change(0, dict(RIGHT, mark='wrong'))
    assert read_marks(marks.path)[0] == Mark(
        'day/1.mp4', 1 / 3, 2., 'jump', 'wrong', 'jump', .75)


def test_changes_by_others_are_kept(marks):
    marks.change(0, RIGHT)
    with open(marks.path, 'a') as file:
        file.write('other.mp4,1,2,run,missed,,,,\n')
    marks.change(0, MISSED)
    assert [mark.video for mark in read_marks(marks.path)] == [
        'day/1.mp4', 'other.mp4', 'day/1.mp4']


def mark_often(path, name):
    marks = EventMarks(path, [make_run(name)])
    for start in range(40):
        marks.change(0, dict(MISSED, start=start, end=start + .5))


def test_two_programs_may_mark_at_the_same_time(tmp_path):
    path = tmp_path / 'new/marks.csv'
    fork = multiprocessing.get_context('fork')
    programs = [fork.Process(target=mark_often, args=(path, name))
                for name in ('1.mp4', '2.mp4')]
    for program in programs:
        program.start()
    for program in programs:
        program.join()
    assert [program.exitcode for program in programs] == [0, 0]
    assert Counter(mark.video for mark in read_marks(path)) == {
        '1.mp4': 40, '2.mp4': 40}


def test_invalid_file_is_not_overwritten(marks):
    marks.change(0, RIGHT)
    with open(marks.path, 'a') as file:
        file.write('other.mp4,1,2,run\n')
    before = marks.path.read_bytes()
    with pytest.raises(MarkError, match='not saved: marks.csv, line 3') as e:
        marks.change(0, MISSED)
    assert str(marks.path.parent) not in str(e.value)
    assert marks.path.read_bytes() == before
    assert shown(marks) == [('right', 'jump', 'jump', 1 / 3)]
    with pytest.raises(ValueError, match='line 3'):
        EventMarks(marks.path, [])


@contextmanager
def full_disk():
    """Let every write of a file fail after 16 bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)


def test_full_disk_loses_nothing(marks):
    marks.change(0, RIGHT)
    before = marks.path.read_bytes()
    with full_disk():
        with pytest.raises(MarkError, match='not saved: File too large'):
            marks.change(0, MISSED)
        assert shown(marks) == [('right', 'jump', 'jump', 1 / 3)]
    assert marks.path.read_bytes() == before
    assert [path.name for path in marks.path.parent.iterdir()] == ['marks.csv']
    marks.change(0, MISSED)
    assert len(read_marks(marks.path)) == 2


@pytest.mark.parametrize('change, error', [
    (dict(mark='good'), "unknown mark 'good'"),
    (dict(mark=[]), 'unknown mark'),
    ({'class': 3}, 'must be text'),
    (dict(label=None), 'must be text'),
    (dict(start='1'), 'start must be a number'),
    (dict(start=-1.), 'start must be a number'),
    (dict(start=float('nan')), 'start must be a number'),
    (dict(start=True), 'start must be a number'),
    ({'class': ''}, 'class must be the detected class'),
    (dict(mark='class', label='background'), 'label must be a class'),
    (dict(mark='missed', label='swim'), 'label must be a class'),
    (dict(MISSED, end=5), 'end must be after 5'),
    (dict(MISSED, end=float('inf')), 'end must be after 5')])
def test_rejects_malformed_messages(marks, change, error):
    with pytest.raises(ValueError, match=error):
        marks.change(0, {**RIGHT, **change})
    assert not marks.path.exists()


@pytest.mark.parametrize('change', [
    dict(start=9.), dict(start=.33), {'class': 'run'}])
def test_rejects_unknown_and_running_events(marks, change):
    with pytest.raises(MarkError, match='in progress, or too old'):
        marks.change(0, {**RIGHT, **change})


def test_number_of_marks_is_limited(marks, monkeypatch):
    monkeypatch.setattr(marks_module, 'MAX_MARKS', 2)
    monkeypatch.setattr(marks_module, 'MAX_SHOWN', 1)
    marks.change(0, MISSED)
    marks.change(0, RIGHT)
    with pytest.raises(MarkError, match='marks.csv is full: it has 2 marks'):
        marks.change(1, RIGHT)
    assert shown(marks) == [('missed', 'run', '', 5)]


def test_live_sources_have_the_time_of_their_start(tmp_path):
    """After a restart with a saved state, it is the same up to a second."""
    path, start = tmp_path / 'marks.csv', 1_800_000_000.

    def marks_of(began):
        return EventMarks(path, [make_run('rtsp://door/x', began)])

    first = marks_of(start + .3)
    first.change(0, RIGHT)
    # It does not drift while the program runs.
    first._runs[0].began = start + 30
    first.change(0, MISSED)
    mark, _ = read_marks(path)
    assert (mark.video, mark.began) == (
        'rtsp://door/x', '2027-01-15T08:00:00+00:00')
    assert len(shown(marks_of(start - 2))) == 2
    # The events of another start at the same second are others.
    other = marks_of(start + 500)
    assert shown(other) == []
    other.change(0, dict(RIGHT, mark='wrong'))
    assert [mark.mark for mark in read_marks(path)] == [
        'right', 'missed', 'wrong']


def test_marks_name_the_clips_of_their_events(tmp_path):
    marks = EventMarks(
        tmp_path / 'out/marks.csv', [make_run()],
        [lambda event: tmp_path / f'clips/{event["start_id"]:06d}.mp4'])
    marks.change(0, RIGHT)
    mark, = read_marks(marks.path)
    assert mark.clip == '../clips/000004.mp4'


class TestServer:
    """Marks of clients of the page."""

    @pytest.fixture
    def open_page(self, marks):
        pytest.importorskip('fastapi')
        from mmvidattn.live.server import LivePage

        def open_page(**kwargs):
            return LivePage(marks._runs, port=0, token='sesam', marks=marks,
                            **kwargs)

        return open_page

    @staticmethod
    def connect(page, **kwargs):
        from websockets.sync.client import connect
        websocket = connect(f'ws://{page.host}:{page.port}/live', **kwargs)
        websocket.send('sesam')
        return websocket

    @staticmethod
    def receive(websocket, kind):
        while True:
            message = json.loads(websocket.recv(timeout=10))
            if message['type'] == kind:
                return message

    def ask(self, websocket, **message):
        websocket.send(json.dumps(dict(dict(type='mark', source=0),
                                       **message)))
        return self.receive(websocket, 'marks')

    def test_every_client_sees_a_change(self, open_page, marks):
        with open_page() as page, self.connect(page) as one, (
                self.connect(page)) as other:
            source, _ = self.receive(one, 'hello')['sources']
            assert source['marks'] == 0 and source['marked'] == dict(
                type='marks', source=0, revision=0, marks=[])
            answer = self.ask(one, **RIGHT)
            assert answer == dict(marks.state(0), error='')
            assert answer['marks'] == [dict(
                mark='right', label='jump', detected='jump', start=1 / 3,
                end=2., score=.75)]
            # The other one gets the number of changes, and asks.
            while self.receive(other, 'state')['marks'] != 1:
                pass
            assert self.ask(other, type='marks') == marks.state(0)
            assert 'day' not in json.dumps(answer)

    def test_errors_are_answers(self, open_page, marks):
        with open_page() as page, self.connect(page) as websocket:
            answer = self.ask(websocket, **dict(RIGHT, start=9.))
            assert answer['error'].startswith('The event is in progress')
            marks.path.write_text('no marks')
            answer = self.ask(websocket, **RIGHT)
            assert 'marks.csv must have columns' in answer['error']
            assert answer['marks'] == []
            marks.path.unlink()
            assert self.ask(websocket, **RIGHT)['error'] == ''

    @pytest.mark.parametrize('message', [
        dict(RIGHT, start='x'), dict(RIGHT, source=2), dict(type='marking')])
    def test_malformed_messages_close(self, open_page, marks, message):
        with open_page() as page:
            self.check_closed(page, message)
        assert not marks.path.exists()

    def check_closed(self, page, message):
        from websockets.exceptions import ConnectionClosed

        from mmvidattn.live.server import UNEXPECTED
        with self.connect(page) as websocket:
            with pytest.raises(ConnectionClosed) as error:
                self.ask(websocket, **message)
            assert error.value.rcvd.code == UNEXPECTED

    def test_read_only_page_shows_marks(self, open_page, marks):
        marks.change(0, RIGHT)
        with open_page(read_only=True) as page:
            with self.connect(page) as websocket:
                assert len(self.ask(websocket, type='marks')['marks']) == 1
            self.check_closed(page, dict(RIGHT, mark='none'))
        assert len(read_marks(marks.path)) == 1

    def test_page_without_a_file_has_no_marks(self, marks):
        pytest.importorskip('fastapi')
        from mmvidattn.live.server import LivePage
        with LivePage(marks._runs, port=0, token='sesam') as page:
            with self.connect(page) as websocket:
                source, _ = self.receive(websocket, 'hello')['sources']
                assert source['marks'] is source['marked'] is None
            self.check_closed(page, RIGHT)

    def test_other_sites_cannot_mark(self, open_page, marks):
        from websockets.exceptions import ConnectionClosed, InvalidStatus
        with open_page() as page:
            with pytest.raises(InvalidStatus, match='403'):
                self.connect(page,
                             additional_headers=dict(Origin='http://evil'))
            page.token = 'other'
            with self.connect(page) as websocket, pytest.raises(
                    ConnectionClosed):
                self.ask(websocket, **RIGHT)
        assert not Path(marks.path).exists()
