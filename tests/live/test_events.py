# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import os

import pytest

from mmvidattn.live.run_files import EventLog, read_events


def test_events_are_written_at_once(tmp_path):
    path = tmp_path / 'new' / 'events.jsonl'
    log = EventLog(path)
    log.write([dict(event='start', start=1.)])
    # Before it is closed.
    assert json.loads(path.read_text()) == dict(event='start', start=1.)
    log.write([])
    log.write([{'event': 'end', 'class': 'tänzen'}])
    log.close()
    lines = path.read_text('utf-8').splitlines()
    assert json.loads(lines[1])['class'] == 'tänzen'
    assert len(log.recent) == 2


def test_written_events_are_synced_to_the_disk(tmp_path, monkeypatch):
    path = tmp_path / 'events.jsonl'
    log, lengths, fsync = EventLog(path), [], os.fsync

    def note(descriptor):
        lengths.append(os.fstat(descriptor).st_size)
        fsync(descriptor)

    monkeypatch.setattr(os, 'fsync', note)
    log.write([dict(event='start'), dict(event='end')])
    log.write([])
    log.close()
    assert lengths == [path.stat().st_size]


@pytest.mark.parametrize('char', ['\u2028', '\x85', '\x0c', '\r\n'])
def test_class_name_may_have_any_character(tmp_path, char):
    path = tmp_path / 'events.jsonl'
    event = {'id': 0, 'class': f'jump{char}high'}
    log = EventLog(path)
    log.write([event, dict(event, id=1)])
    log.close()
    assert read_events(path, 0) == ([event, dict(event, id=1)], log.size)
    assert [*EventLog(path, log.size).recent] == [event, dict(event, id=1)]
