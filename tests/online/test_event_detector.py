# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import math

import numpy as np
import pytest

from mmvidattn.online.event_detector import EventDetector, merge_event_options

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
    result, start = [], None
    for t, score in enumerate([*scores, -1.]):
        if start is None and score >= on:
            start = t
        if start is not None and score < off:
            if t - start >= least:
                result.append((start, t))
            start = None
    return result


def test_action_starts_at_on_and_ends_below_off():
    events = run(jump(.2, .4, .6, .4, .35, .2, .4, .1), min_duration=0.25)
    assert brief(events) == [('start', .5, None, .75),
                             ('end', .5, 1.25, 1.5)]
    assert events[0]['class'] == 'jump' and events[0]['index'] == 1
    assert events[1]['peak'] == 0.6
    # The end of the stream ends an action.
    start, end = run(jump(.1, .9, .9, .9))
    assert (end['end'], end['cut']) == (1., True)


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


def test_active_since_is_the_oldest_action_in_progress():
    detector = EventDetector(NAMES, min_duration=.5)
    results = []
    for t, scores in enumerate([
            (0, .1, .1), (0, .9, .1), (.9, .9, .9), (0, .1, .9),
            (0, .1, .1)]):
        detector.update(t / 4, (t + 1) / 4, np.array(scores))
        results.append(detector.active_since)
    # Even before the action is reported.
    assert results == [None, .25, .25, .5, None]


@pytest.mark.parametrize('least', [1, 2, 5])
def test_matches_naive(least):
    rng = np.random.default_rng(least)
    scores = rng.random((400, 3))
    scores = (scores[:-2] + scores[1:-1] + scores[2:]) / 3
    events = run(scores, rate=1, on=.6, off=.4, min_duration=least)
    for i in 1, 2:
        expected = naive_segments(scores[:, i], .6, .4, least)
        assert len(expected) > 3
        got = [(e['start'], e['end']) for e in events
               if e['event'] == 'end' and e['index'] == i]
        assert got == expected
        # Each action was reported as soon as it was long enough.
        assert [(e['start'], e['time']) for e in events
                if e['event'] == 'start' and e['index'] == i] == [
                    (start, start + least) for start, _ in expected]


def tuned(name='jump', **rules):
    return dict(thresholds={name: rules})


@pytest.mark.parametrize('options, error', [
    (dict(on=.3, off=.5), '0 < off <= on <= 1, got on=0.3, off=0.5'),
    (dict(on=1.5), '0 < off <= on <= 1'),
    (dict(off=0), '0 < off <= on <= 1'),
    (dict(min_duration=-1), 'min_duration must be .*got -1'),
    (tuned('swim', on=.5, off=.3), "must be an action, got 'swim'"),
    (tuned('background', on=.5, off=.3), 'must be an action'),
    (tuned(on=.5), "thresholds of 'jump' must be numbers"),
    (tuned(on=.5, off=.6), '0 < off <= on <= 1'),
    (tuned(on=.5, off=.3, smoothing=-1), 'smoothing must be'),
    (tuned(on=.5, off=.3, tau=1), "'tau'"),
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


def test_changed_thresholds_are_saved():
    detector = EventDetector(NAMES, on=.5, off=.3)
    detector.set_threshold('jump', .8)
    state = detector.state_dict()
    other = EventDetector(NAMES, on=.5, off=.25)
    other.load_state_dict(state)
    # The ratio is the loading detector's.
    assert other.thresholds()['changed'] == {
        'jump': (.8, pytest.approx(.4))}


def test_replayed_start_has_the_threshold_as_its_peak():
    scores = np.array(jump(.8)[0])
    events = EventDetector(NAMES, min_duration=0).update(0., .25, scores)
    detector = EventDetector(NAMES, on=.6)
    detector.replay(events[0])
    assert [e['peak'] for e in detector.finish(1.)] == [.6]
    detector.replay(events[0])
    detector.update(.25, .5, scores)
    assert [e['peak'] for e in detector.finish(1.)] == [.8]


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


TUNED = dict(jump=dict(on=.8, off=.4, min_duration=0.))


def test_tuned_thresholds_replace_the_initial_ones_of_their_class():
    scores = [[0, .7, .7], [0, .8, .2], [0, .5, .2], [0, .3, .2]]
    events = run(scores, on=.6, off=.3, min_duration=.5, thresholds=TUNED)
    # The event of 'run' is too short.
    assert [(e['event'], e['class'], e['start'], e['time'])
            for e in events] == [('start', 'jump', .25, .5),
                                 ('end', 'jump', .25, 1.)]
    # The same detector without tuned thresholds.
    assert [(e['class'], e['start']) for e in run(
        scores, on=.6, off=.3, min_duration=.5)] == [('jump', 0.)] * 2


def test_changed_thresholds_return_to_the_tuned_ones():
    detector = EventDetector(NAMES, on=.5, off=.3, thresholds=TUNED)
    assert detector.thresholds() == dict(
        on=.5, off=.3, changed={}, tuned=dict(jump=(.8, .4)))
    detector.set_threshold('jump', .4)
    assert detector.thresholds()['changed'] == {
        'jump': (.4, pytest.approx(.2))}
    detector.set_threshold('jump', None)
    assert detector.thresholds()['changed'] == {}
    # 0.5 is the threshold of the other classes; for this class with a tuned
    # threshold, it counts as a change.
    detector.set_threshold('jump', .5)
    assert detector.thresholds()['changed'] == {
        'jump': (.5, pytest.approx(.25))}


def test_smoothing_is_a_moving_average_that_gaps_age():
    rng = np.random.default_rng(0)
    scores = rng.random((200, 3))
    steps = np.sort(rng.choice(1000, 200, replace=False))
    detector = EventDetector(NAMES, thresholds=dict(
        jump=dict(on=.5, off=.5, smoothing=2., min_duration=0.),
        run=dict(on=.5, off=.5, min_duration=0.)))
    active = {1: [], 2: []}
    for step, row in zip(steps, scores):
        detector.update(step / 4, (step + 1) / 4, row)
        for i, each in active.items():
            each.append(i in detector._current)
    average, value = [], scores[0, 1]
    for gap, score in zip(np.diff(steps, prepend=steps[0]), scores[:, 1]):
        keep = np.exp(-gap / 4 / 2)
        value = keep * value + (1 - keep) * score
        average.append(value)
    assert active[1] == [value >= .5 for value in average]
    assert active[2] == [value >= .5 for value in scores[:, 2]]
    assert active[1] != [value >= .5 for value in scores[:, 1]]


def test_smoothed_detector_resumes_from_its_state():
    rng = np.random.default_rng(1)
    scores = rng.random((300, 3)).astype(np.float32)
    rules = dict(jump=dict(on=.55, off=.45, smoothing=1., min_duration=.5))
    whole, events = EventDetector(NAMES, thresholds=rules), []
    expected = [e for t, row in enumerate(scores)
                for e in whole.update(t / 4, (t + 1) / 4, row)]
    detector = EventDetector(NAMES, thresholds=rules)
    for t, row in enumerate(scores):
        events += detector.update(t / 4, (t + 1) / 4, row)
        state = detector.state_dict()
        detector = EventDetector(NAMES, thresholds=rules)
        detector.load_state_dict(state)
    assert events == expected and len(events) > 20


def test_nan_does_not_stay_in_the_average():
    rules = dict(jump=dict(on=.5, off=.5, smoothing=1., min_duration=0.))
    detector = EventDetector(NAMES, thresholds=rules)
    for t, score in enumerate([np.nan, .2, np.nan, .9, .9, .9]):
        events = detector.update(t, t + 1., np.array([0, score, 0]))
        if events:
            break
    assert (t, events[0]['start']) == (3, 3)


def test_options_of_all_classes_drop_earlier_tuned_thresholds():
    config = dict(on=.4, thresholds=TUNED)
    assert merge_event_options(config, {})['thresholds'] == TUNED
    assert merge_event_options({}, dict(thresholds=TUNED))[
        'thresholds'] == TUNED
    for name in 'on', 'off', 'min_duration':
        assert 'thresholds' not in merge_event_options(config, {name: .2})


@pytest.mark.parametrize('start, end', [
    (1, 1), (1, .5), (.5, .75), (.5, 1), (math.nan, 2), (1, math.nan),
    (1, math.inf)])
def test_steps_must_advance(start, end):
    detector = EventDetector(NAMES)
    detector.update(.75, 1, np.array([0, .9, 0]))
    with pytest.raises(ValueError, match='a step must end after its start and '
                       'after the end of the previous step .1 s., got start='
                       f'{start:g} and end={end:g}'):
        detector.update(start, end, np.array([0, .9, 0]))
    # The action goes on, and another source may start at 0.
    detector.update(1, 1.25, np.array([0, .9, 0]))
    detector.finish(1.25)
    assert detector.update(0, .25, np.array([0, .9, 0])) == []
