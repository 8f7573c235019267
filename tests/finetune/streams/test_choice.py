# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from pathlib import Path

import pytest

from mmvidattn.datasets.annotations.video_segment import VideoSegment
from mmvidattn.datasets.video_facts import VideoFacts
from mmvidattn.finetune.streams.plan import StreamPlan
from mmvidattn.finetune.streams.prepare import Speed, choose, count_updates


@pytest.fixture
def plan():
    """Eight training videos with 256 frames each at 5 frames per second."""
    names = [f'{i}' for i in range(8)]
    return StreamPlan(
        Path('.'), dict(train=names),
        [VideoSegment('', '0', 0, 4, dict(action='a'), '')],
        ['background', 'a'],
        {name: VideoFacts(512, 10, 32, 32, 51.2) for name in names})


def pick(plan, minutes, seconds, features, kind='auto'):
    """Choose with epochs of ``seconds`` by side, and record measurements."""
    measured = []

    def time_pixels(side):
        measured.append(side)
        return Speed(side, 1, seconds[side])

    def time_features():
        measured.append('features')
        return features

    return choose(plan, minutes, kind, time_pixels, time_features,
                  [*seconds]), measured


def test_counts_updates(plan):
    assert plan.frame_rate == 5 and plan.frames == 2048
    # 2048 frames are 4 updates with 4 rows of 128 frames. 42 s are 70 % of a
    # minute.
    assert count_updates(plan, Speed(64, 1, 2.), 1) == 4 * 21


@pytest.mark.parametrize('seconds, chosen', [
    # 300 updates are 75 epochs, in 42 s.
    ({64: .5, 32: .1}, ('pixels', 64)),
    ({64: .6, 32: .5}, ('pixels', 32))])
def test_takes_the_largest_images_that_fit(plan, seconds, chosen):
    choice, measured = pick(plan, 1, seconds, None)
    assert (choice.kind, choice.speed.side) == chosen
    assert measured == [*seconds][:1 + (chosen[1] == 32)]
    assert 'and 300 are enough' in choice.reason


def test_takes_features_if_pixels_are_too_slow(plan):
    choice, measured = pick(plan, 1, {64: 3., 32: 2.}, 29)
    assert choice.kind == 'features' and measured == [64, 32, 'features']
    assert 'only 84 updates of a network of pixels (32 x 32)' in choice.reason
    assert 'features of a frozen network take 0.5 minutes' in choice.reason


@pytest.mark.parametrize('features, kind, minutes', [
    (600, 'pixels', 4), (60, 'features', 2)])
def test_takes_the_faster_one_if_both_are_too_slow(plan, features, kind,
                                                   minutes):
    choice, _ = pick(plan, 1, {32: 2.}, features)
    assert choice.kind == kind
    assert f'both are too slow: use --minutes {minutes}' in choice.reason


def test_takes_the_given_kind(plan):
    choice, measured = pick(plan, 1, {32: 2.}, 0, 'pixels')
    assert choice.kind == 'pixels' and measured == [32]
    assert 'use --minutes 4' in choice.reason
    choice, measured = pick(plan, 1, {32: .1}, 1e9, 'features')
    assert choice.kind == 'features' and not measured
