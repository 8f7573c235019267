# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import os

import numpy as np
import pytest

from mmvidattn.live.events import (
    EventDetector,
    EventLog,
    merge_event_options,
    read_events,
)

NAMES = 'background', 'jump', 'run'


def run(scores, rate=4, **options):
    """Return the events of scores [T, K]."""
    detector = EventDetector(NAMES, **options)
    events = []
    for t, row in enumerate(scores):
        events += detector.update(t / rate, (t + 1) / rate, np.array(row))
    return events + detector.finish(len(scores) / rate)


def jump(*scores):
    return [[0., score, 0.] for score in scores]


def brief(events):
    return [(e['event'], e['start'], e.get('end'), e['time'])
            for e in events]


def naive_segments(scores, on, off, least):
    """Find segments from a score >= ``on`` to the next score < ``off``."""
    found, start = [], None
    for t, score in enumerate([*scores, -1.]):
        if start is None and score >= on:
            start = t
        if start is not None and score < off:
            if t - start >= least:
                found.append((start, t))
            start = None
    return found


def test_action_starts_at_on_and_ends_below_off():
    events = run(jump(.2, .4, .6, .4, .35, .2, .4, .1), min_duration=0.25)
    assert brief(events) == [('start', .5, None, .75),
                             ('end', .5, 1.25, 1.5)]
    assert events[0]['class'] == 'jump' and events[0]['index'] == 1
    assert events[1]['peak'] == 0.6


@pytest.mark.parametrize('dtype', [np.float32, np.float64])
def test_scores_equal_to_a_threshold_reach_it(dtype):
    """In float32, 0.7 is below 0.7 and 0.3 is above 0.3."""
    for on, off in (.7, .7), (.7, .3), (.3, .3):
        detector = EventDetector(NAMES, on=on, off=off, min_duration=0.)
        rows = np.array(jump(on, off, 0.), dtype)
        events = [detector.update(t, t + 1., row)
                  for t, row in enumerate(rows)]
        assert [[event['event'] for event in step] for step in events] == [
            ['start'], [], ['end']]


def test_short_actions_are_not_reported():
    scores = jump(.9, .9, .1, .9, .9, .9, .1)
    assert brief(run(scores, min_duration=0.75)) == [
        ('start', .75, None, 1.5), ('end', .75, 1.5, 1.75)]


def test_short_dip_does_not_end_an_action():
    assert brief(run(jump(.9, .9, .31, .9, .1))) == [
        ('start', 0., None, .5), ('end', 0., 1., 1.25)]


def test_background_is_not_an_action():
    assert run([[.9, 0, 0]] * 4) == []
    assert run([[0, .9, 0]] * 4, ignore=(0, 1)) == []


def test_end_of_the_stream_ends_actions():
    start, end = run(jump(.1, .9, .9, .9))
    assert (end['end'], end['cut']) == (1., True)


def test_gap_counts_as_time():
    detector = EventDetector(NAMES, min_duration=2.)
    assert detector.update(0, .25, np.array([0, .9, 0])) == []
    event, = detector.update(4., 4.25, np.array([0, .9, 0]))
    assert (event['start'], event['time']) == (0, 4.25)


def test_active_since_is_the_oldest_action_in_progress():
    detector = EventDetector(NAMES, min_duration=.5)
    found = []
    for t, scores in enumerate([
            (0, .1, .1), (0, .9, .1), (.9, .9, .9), (0, .1, .9),
            (0, .1, .1)]):
        detector.update(t / 4, (t + 1) / 4, np.array(scores))
        found.append(detector.active_since)
    # Even before the action is reported.
    assert found == [None, .25, .25, .5, None]


@pytest.mark.parametrize('least', [1, 2, 5])
def test_matches_naive(least):
    rng = np.random.default_rng(least)
    scores = rng.random((400, 3))
    scores = (scores[:-2] + scores[1:-1] + scores[2:]) / 3
    events = run(scores, rate=1, on=.6, off=.4, min_duration=least)
    for i in 1, 2:
        wanted = naive_segments(scores[:, i], .6, .4, least)
        assert len(wanted) > 3
        found = [(e['start'], e['end']) for e in events
                 if e['event'] == 'end' and e['index'] == i]
        assert found == wanted
        # Each action was reported as soon as it was long enough.
        assert [(e['start'], e['time']) for e in events
                if e['event'] == 'start' and e['index'] == i] == [
                    (start, start + least) for start, _ in wanted]


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


@pytest.mark.parametrize('options, error', [
    (dict(on=.3, off=.5), '0 < off <= on <= 1, got on=0.3, off=0.5'),
    (dict(on=1.5), '0 < off <= on <= 1'),
    (dict(off=0), '0 < off <= on <= 1'),
    (dict(min_duration=-1), 'min_duration must be .*got -1'),
])
def test_rejects_options(options, error):
    with pytest.raises(ValueError, match=error):
        EventDetector(NAMES, **options)


def follow(detector, scores, rate=4):
    """Return the events of jump's scores; functions change the detector."""
    events, t = [], 0
    for score in scores:
        if callable(score):
            score(detector)
            continue
        events += detector.update(
            t / rate, (t + 1) / rate, np.array([0., score, 0.], np.float32))
        t += 1
    return brief(events)


def threshold(on, name='jump'):
    return lambda detector: detector.set_threshold(name, on)


@pytest.mark.parametrize('scores, expected', [
    # Scores between the new and the old `on`: the action starts when the
    # threshold changes, and not before.
    ([.4, .4, threshold(.2), .4, .4],
     [('start', .5, None, .75)]),
    # An action in progress continues above the new `off`, 0.6 times `on`.
    ([.6, .6, threshold(.9), .6, .6, .53, .6],
     [('start', 0., None, .25), ('end', 0., 1., 1.25)]),
    # An action in progress continues below the old `off`, as long as its
    # scores exceed the new one.
    ([.6, threshold(.1), .07, .07, .05],
     [('start', 0., None, .25), ('end', 0., .75, 1.)]),
    # None restores the initial thresholds. A score that equals `on` starts an
    # action, and a score that equals `off` continues it.
    ([threshold(1.), .5, threshold(None), .5, .3, .29],
     [('start', .25, None, .5), ('end', .25, .75, 1.)]),
    # The threshold of a second class.
    ([threshold(.1, 'run'), .4, .6, .2],
     [('start', .25, None, .5), ('end', .25, .5, .75)]),
], ids=['lower', 'higher', 'keeps', 'back', 'other'])
def test_changed_threshold_applies_from_the_next_step(scores, expected):
    detector = EventDetector(NAMES, min_duration=.25)
    assert follow(detector, scores) == expected


def test_thresholds_lists_changed_ones():
    detector = EventDetector(NAMES, on=.5, off=.3)
    assert detector.thresholds() == dict(on=.5, off=.3, changed={})
    detector.set_threshold('jump', .8)
    detector.set_threshold('run', .5)
    assert detector.thresholds()['changed'] == {
        'jump': (.8, pytest.approx(.48))}
    detector.set_threshold('jump', None)
    assert detector.thresholds()['changed'] == {}


def test_changed_thresholds_are_saved():
    detector = EventDetector(NAMES, on=.5, off=.3)
    detector.set_threshold('jump', .8)
    state = detector.state_dict()
    other = EventDetector(NAMES, on=.5, off=.25)
    other.load_state_dict(state)
    # The ratio is the loading detector's.
    assert other.thresholds()['changed'] == {
        'jump': (.8, pytest.approx(.4))}
    # A state of an earlier version.
    del state['changed']
    other = EventDetector(NAMES)
    other.load_state_dict(state)
    assert other.thresholds()['changed'] == {}


@pytest.mark.parametrize('name, on, message', [
    ('background', .5, "must be an action, got 'background'"),
    ('swim', .5, "must be an action, got 'swim'"),
    ('jump', 0., 'on must be in \\(0, 1\\], got 0.0'),
    ('jump', 1.1, 'got 1.1'), ('jump', float('nan'), 'got nan')])
def test_rejects_thresholds(name, on, message):
    detector = EventDetector(NAMES)
    with pytest.raises(ValueError, match=message):
        detector.set_threshold(name, on)
    assert detector.thresholds()['changed'] == {}


@pytest.mark.parametrize('options, on, off', [
    ([dict(on=.2)], .2, .12),
    ([dict(on=.3)], .3, .3),
    ([dict(on=.9)], .9, .3),
    ([dict(on=.2, off=.1)], .2, .1),
    ([dict(on=.8, off=.4), dict(on=.2)], .2, .1),
    ([dict(on=.8, off=.4), dict(min_duration=1)], .8, .4)])
def test_on_below_off_lowers_off(options, on, off):
    merged = merge_event_options(*options)
    assert (merged['on'], merged['off']) == (on, pytest.approx(off))


@pytest.mark.parametrize('char', ['\u2028', '\x85', '\x0c', '\r\n'])
def test_class_name_may_have_any_character(tmp_path, char):
    path = tmp_path / 'events.jsonl'
    event = {'id': 0, 'class': f'jump{char}high'}
    log = EventLog(path)
    log.write([event, dict(event, id=1)])
    log.close()
    assert read_events(path, 0) == ([event, dict(event, id=1)], log.size)
    assert [*EventLog(path, log.size).recent] == [event, dict(event, id=1)]
