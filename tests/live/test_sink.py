# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import threading
import time

import numpy as np
import pytest

from mmvidattn.live import Detection, sinks
from mmvidattn.live.sinks import EventSink, Sink, SinkThread


def detection(step=0, events=()):
    none = np.zeros(0)
    return Detection(step, (step + 1) / 4, none, none, events, (), {})


class Recorder(Sink):
    name = 'recorder'
    queue_size = 4

    def __init__(self, wait=0., errors=()):
        self.wait, self.errors = wait, dict(errors)
        self.found, self.closed = [], False
        self.go = threading.Event()
        self.go.set()

    def write(self, detection):
        self.go.wait()
        time.sleep(self.wait)
        if detection.step in self.errors:
            raise self.errors[detection.step]
        self.found.append(detection.step)

    def close(self):
        self.closed = True


def test_blocked_sink_does_not_delay_the_run():
    sink, lines = Recorder(), []
    thread = SinkThread(sink, drop=True, log=lines.append)
    sink.go.clear()
    for step in range(40):
        thread.write(detection(step))
    assert not sink.found
    # The sink has taken at most one item, and the latest four are queued.
    assert thread.dropped in (35, 36)
    sink.go.set()
    thread.close()
    assert sink.found[-4:] == [36, 37, 38, 39] and sink.closed
    assert len(sink.found) + thread.dropped == 40
    # The report of the run counts them.
    assert lines == []


def test_recording_waits_for_the_sink():
    sink, lines = Recorder(wait=0.002), []
    thread = SinkThread(sink, drop=False, log=lines.append)
    for step in range(40):
        thread.write(detection(step))
    thread.close()
    assert sink.found == list(range(40)) and not lines


def test_each_error_is_logged_once():
    errors = {i: OSError('disk full') for i in range(20)}
    errors[30] = KeyError('x')
    sink, lines = Recorder(errors=errors), []
    thread = SinkThread(sink, drop=False, log=lines.append)
    for step in range(40):
        thread.write(detection(step))
    thread.close()
    assert sink.found == [*range(20, 30), *range(31, 40)] and sink.closed
    assert lines == ['recorder: disk full', "recorder: 'x'"]
    assert thread.failed == 21


def test_hanging_sink_is_abandoned(monkeypatch):
    monkeypatch.setattr(sinks, 'CLOSE_SECONDS', 0.1)
    sink, lines = Recorder(), []
    thread = SinkThread(sink, drop=True, log=lines.append)
    sink.go.clear()
    thread.write(detection())
    thread.write(detection())
    thread.close()
    assert lines == ['recorder hangs and was abandoned']
    assert thread.dropped == 2
    assert not sink.closed
    sink.go.set()


def test_event_sink_gets_events_at_the_end_of_the_source():
    sink, result = EventSink(), []
    sink.write = result.append
    thread = SinkThread(sink, True, pytest.fail)
    thread.write(detection(0))
    thread.write(detection(1, [1, 2]))
    thread.finish([3])
    thread.close()
    assert result == [1, 2, 3]
