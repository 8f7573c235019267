# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import math
import random

import numpy as np
import pytest

from mmvidattn.online.event_detector import EventDetector, merge_event_options

NAMES = 'background', 'jump', 'run'
TUNED = dict(jump=dict(on=.8, off=.4, min_duration=0.))


def row(score, other=0.):
    return np.array([.9, score, other])


class NaiveDetector:
    """Detector of the events of one class, without numbers of events."""

    def __init__(self, dtype, on, off, min_duration, smoothing=0.):
        self.dtype, self.initial = dtype, (on, off)
        self.on, self.off = on, off
        self.min_duration, self.smoothing = min_duration, smoothing
        self.start = self.average = self.last = None

    def change(self, on):
        self.on, self.off = self.initial
        if on not in (None, self.on):
            self.on, self.off = on, on * (self.off / self.on)

    def update(self, start, end, score):
        """Return the events of a step."""
        events = []
        if self.smoothing and self.average is not None:
            keep = math.exp(-(end - self.last) / self.smoothing)
            score = self.dtype(keep * self.average + (1 - keep) * score)
        self.average, self.last = score, end
        if self.start is not None and score < self.dtype(self.off):
            if self.reported:
                events.append(('end', self.start, start, self.peak, end))
            self.start = None
        if self.start is None and score >= self.dtype(self.on):
            self.start, self.peak, self.reported = start, 0., False
        if self.start is not None:
            self.peak = max(self.peak, score)
            if not self.reported and end - self.start > (
                    self.min_duration - 1e-6):
                self.reported = True
                events.append(('start', self.start, end))
        return events


@pytest.mark.parametrize('seed', range(8))
def test_matches_naive_detectors_of_each_class(seed):
    """With tuned thresholds, changes, gaps, ties, and saved states.

    In float32, 0.7 is below 0.7 and 0.3 is above 0.3.
    """
    rng = random.Random(seed)
    dtype = rng.choice([np.float32, np.float64])
    plain = dict(on=.7, off=.3, min_duration=rng.choice([0., .25, 1.]))
    tuned = dict(on=.6, off=.3, smoothing=rng.choice([0., 2.]),
                 min_duration=.5)
    options = dict(plain, thresholds=dict(run=tuned)) if seed % 2 else plain
    naive = [NaiveDetector(dtype, **plain),
             NaiveDetector(dtype, **(tuned if seed % 2 else plain))]
    detector, step, ids, starts = EventDetector(NAMES, **options), 0, [], {}
    for _ in range(600):
        if rng.random() < .05:
            i, on = rng.randrange(2), rng.choice([None, .2, .5, .9])
            detector.set_threshold(NAMES[1 + i], on)
            naive[i].change(on)
        if rng.random() < .1:
            state = detector.state_dict()
            detector = EventDetector(NAMES, **options)
            detector.load_state_dict(state)
        step += rng.choice([1, 1, 1, 6])
        start, end = step / 4, (step + 1) / 4
        scores = np.array([.9, *rng.choices(
            [.1, .2, .3, .5, .6, .7, .8], k=2)], dtype)
        want = sorted((kind, i, *values) for i in (1, 2) for kind, *values
                      in naive[i - 1].update(start, end, scores[i]))
        got = []
        for event in detector.update(start, end, scores):
            ids.append(event['id'])
            i, more = event['index'], []
            assert event['class'] == NAMES[i]
            if event['event'] == 'start':
                starts[i] = event['id']
            else:
                assert event['start_id'] == starts.pop(i)
                more = [event['end'], pytest.approx(event['peak'], abs=1e-4)]
            got.append((event['event'], i, event['start'], *more,
                        event['time']))
        # Ends are first.
        assert got == sorted(got, key=lambda each: each[0])
        assert sorted(got, key=lambda each: each[:2]) == want
        assert detector.active_since == min(
            (each.start for each in naive if each.start is not None),
            default=None)
    assert ids == list(range(len(ids))) and len(ids) > 20


def test_an_event_has_all_entries():
    detector = EventDetector(NAMES, min_duration=.25)
    assert detector.update(0, .25, row(.1)) == []
    assert detector.update(.25, .5, row(.62345678)) == [{
        'id': 0, 'event': 'start', 'class': 'jump', 'index': 1, 'start': .25,
        'time': .5}]
    # The end of the source ends an action.
    assert detector.finish(.75) == [{
        'id': 1, 'event': 'end', 'class': 'jump', 'index': 1, 'start': .25,
        'end': .75, 'peak': .6235, 'start_id': 0, 'cut': True, 'time': .75}]
    assert detector.active_since is None and detector.finish(1.) == []


def test_changed_thresholds_are_saved_and_return_to_the_tuned_ones():
    detector = EventDetector(NAMES, on=.5, off=.3, thresholds=TUNED)
    assert detector.thresholds() == dict(
        on=.5, off=.3, changed={}, tuned=dict(jump=(.8, .4)))
    # 0.5 is the threshold of the other classes; for this class with a tuned
    # threshold, it counts as a change.
    changes = dict(jump=(.5, .25))
    for on, changed in ((.5, changes), (None, {}), (.5, changes)):
        detector.set_threshold('jump', on)
        assert detector.thresholds()['changed'] == changed
    # The ratio is the loading detector's.
    other = EventDetector(NAMES, on=.4, off=.1)
    other.load_state_dict(detector.state_dict())
    assert other.thresholds()['changed'] == dict(jump=(.5, .125))


def test_replayed_start_has_the_threshold_as_its_peak():
    events = EventDetector(NAMES, min_duration=0).update(0., .25, row(.8))
    detector = EventDetector(NAMES, on=.6)
    detector.replay(events[0])
    assert [(e['peak'], e['id']) for e in detector.finish(1.)] == [(.6, 1)]
    detector.replay(events[0])
    detector.update(.25, .5, row(.8))
    end, = detector.finish(1.)
    assert (end['peak'], end['id'], end['start_id']) == (.8, 1, 0)
    detector.replay(events[0])
    detector.replay(end)
    assert detector.active_since is None and detector.finish(1.) == []


def test_nan_does_not_stay_in_the_average():
    rules = dict(jump=dict(on=.5, off=.5, smoothing=1., min_duration=0.))
    detector = EventDetector(NAMES, thresholds=rules)
    starts = [event['start'] for t, score in enumerate(
        [np.nan, .2, np.nan, .9, .9, .9])
        for event in detector.update(t, t + 1., row(score))]
    assert starts == [3]


def test_average_starts_anew_after_the_end():
    rules = dict(jump=dict(on=.5, off=.5, smoothing=99., min_duration=0.))
    detector = EventDetector(NAMES, thresholds=rules)
    assert detector.update(0., 1., row(.9)) and detector.finish(1.)
    assert detector.update(1., 2., row(.1)) == []


def test_later_options_take_precedence():
    """If `on` is below an earlier `off`, it lowers `off`."""
    config = dict(on=.8, off=.4)
    for options, on, off in (
            ([dict(on=.2)], .2, .12), ([dict(on=.3)], .3, .3),
            ([dict(on=.9)], .9, .3), ([dict(on=.2, off=.1)], .2, .1),
            ([config, dict(on=.2)], .2, .1),
            ([config, dict(min_duration=1)], .8, .4)):
        merged = merge_event_options(*options)
        assert (merged['on'], merged['off']) == (on, pytest.approx(off))
    # Options of all classes drop earlier thresholds of some classes.
    config['thresholds'] = TUNED
    for options in (config, {}), ({}, config):
        assert merge_event_options(*options)['thresholds'] == TUNED
    for name in 'on', 'off', 'min_duration':
        assert 'thresholds' not in merge_event_options(config, {name: .2})
