# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import math

import numpy as np
import pytest

from mmvidattn.evaluation.events.useful_minutes import (
    Minute,
    disagreement,
    useful_minutes,
)
from mmvidattn.online.frame_scores import FrameScores


def naive_entropy(p):
    return sum(-q * math.log2(q) for q in (p, 1 - p) if q > 0)


def naive_minutes(name, rate, scores, ignore, seconds):
    """The same from the definition, with loops."""
    T, K = scores.shape
    reach = max(1, round(rate))
    values = []
    for t in range(T):
        near = [s for s in range(T) if abs(s - t) <= reach]
        unsure, disagree = 0., 0.
        for k in range(K):
            if k in ignore:
                continue
            p = [float(scores[s, k]) for s in near]
            unsure = max(unsure, naive_entropy(float(scores[t, k])))
            disagree = max(disagree, naive_entropy(sum(p) / len(p)) - sum(
                map(naive_entropy, p)) / len(p))
        values.append((unsure, disagree))
    length = max(1, round(seconds * rate))
    minutes = []
    for first in range(0, T, length):
        part = values[first:first + length]
        if len(part) < length / 2 and first:
            continue
        minutes.append(Minute(
            name, first / rate, (first + len(part)) / rate,
            *(sum(column) / len(part) for column in zip(*part))))
    return minutes


@pytest.mark.parametrize('seed', range(8))
def test_matches_naive(seed):
    random = np.random.default_rng(seed)
    rate, seconds = [(4., 5.), (.5, 9.), (10 / 3, 3.)][seed % 3]
    videos = {}
    for i in range(3):
        scores = random.random((random.integers(1, 70), 4)) ** 2
        # Scores of 0 and 1, and changes of class.
        scores[random.random(len(scores)) < .3] = 0, 1, 0, .5
        videos[f'{i}'] = FrameScores(rate, scores.astype(np.float32))
    expected = sorted((
        minute for name, (_, scores) in videos.items()
        for minute in naive_minutes(name, rate, scores, {0}, seconds)),
        key=lambda minute: -minute.usefulness)
    found = useful_minutes(videos, 100, {0}, seconds)
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        assert one == pytest.approx(other, abs=1e-9)


def test_disagreement_of_known_scores():
    flips = np.tile([[0.], [1.]], (8, 1))
    assert disagreement(np.full((9, 1), .3), 2) == pytest.approx(0, abs=1e-12)
    # Half of four scores, in the middle of a change.
    step = np.repeat([0., 1.], 4)[:, None]
    around = disagreement(step, 1)[:, 0]
    h = naive_entropy(1 / 3)
    assert around == pytest.approx([0, 0, 0, h, h, 0, 0, 0])
    assert disagreement(flips, 1)[0, 0] == pytest.approx(1.)
    assert (disagreement(flips, 8) > .99).all()


def scores_of(*minutes):
    """Return scores of minutes with one probability each, a step a second."""
    p = np.repeat(minutes, 60)
    return FrameScores(1., np.stack([1 - p, p], 1).astype(np.float32))


def test_uncertain_minutes_are_chosen_first():
    found = useful_minutes(dict(a=scores_of(0, .5, 1, .9)), 2, {0})
    assert [(m.start, m.end) for m in found] == [(60, 120), (180, 240)]
    assert found[0].uncertainty == pytest.approx(1.)


def test_changing_minutes_come_before_equally_certain_ones():
    still = np.zeros((120, 2), np.float32)
    still[60:, 1] = np.arange(60) % 2
    found = useful_minutes(dict(a=FrameScores(1., still)), 1)
    assert (found[0].start, found[0].uncertainty) == (60, 0)
    assert found[0].disagreement > .9


def test_minutes_are_spread_over_videos():
    videos = dict(a=scores_of(.5, .5, .5, .5), b=scores_of(.1, .1),
                  c=scores_of(.2))
    chosen = [m.video for m in useful_minutes(videos, 3, {0})]
    assert chosen == ['a', 'a', 'c']
    assert [m.video for m in useful_minutes(videos, 3, {0}, per_video=1)
            ] == ['a', 'c', 'b']
    assert len(useful_minutes(videos, 100, {0})) == 7


def test_short_rests_are_left_out():
    def ends(steps):
        scores = FrameScores(1., np.full((steps, 2), .5, np.float32))
        return [m.end for m in useful_minutes(dict(a=scores))]

    assert ends(7) == [7]
    assert ends(89) == [60] and ends(90) == [60, 90]
    assert ends(0) == []


def test_rejects_missing_videos_and_classes():
    with pytest.raises(ValueError, match='videos must not be empty'):
        useful_minutes({})
    with pytest.raises(ValueError, match='number must be a positive integer'):
        useful_minutes(dict(a=scores_of(0)), 0)
    with pytest.raises(ValueError, match='leave at least one class'):
        useful_minutes(dict(a=scores_of(0)), ignore={0, 1})
