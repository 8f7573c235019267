# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest

from mmvidattn.live import event_frames
from mmvidattn.live.event_frames import EventFrames

RATE = 4


def event(kind, index, start, **more):
    return dict(event=kind, index=index, start=start, **more)


def follow(num_steps, events, size=10):
    """Add pictures of steps; ``events`` has the events of each step."""
    frames = EventFrames()
    for step in range(num_steps):
        frames.add((step + 1) / RATE, b'%d' % step * size,
                   events.get(step, ()))
    return frames


def times(frames, *key):
    return [time for time, _ in frames.get(*key)]


def test_pictures_cover_time_before_and_after_the_event():
    frames = follow(60, {25: [event('start', 1, 6.)],
                         31: [event('end', 1, 6., end=8.)]})
    # Pictures from 2 seconds before the start to 1 second after the end.
    assert times(frames, 1, 6.) == [4 + t / 4 for t in range(1, 21)]
    assert frames.get(1, 6.)[0] == (4.25, b'16' * 10)


def test_pictures_of_a_long_event_are_thinned_out_evenly():
    frames = follow(400, {10: [event('start', 1, 2.5)]})
    result = times(frames, 1, 2.5)
    assert len(result) <= event_frames.MAX_FRAMES
    assert result[0] == 0.75 and result[-1] > 95
    assert {b - a for a, b in zip(result, result[1:])} == {4.}


def test_unknown_events_have_no_pictures():
    frames = follow(9, {2: [event('start', 1, .25)]})
    assert frames.get(2, .25) == frames.get(1, .5) == []


@pytest.mark.parametrize('bound', ['MAX_CLIPS', 'MAX_BYTES'])
def test_memory_is_bounded(monkeypatch, bound):
    monkeypatch.setattr(event_frames, bound,
                        dict(MAX_CLIPS=3, MAX_BYTES=4000)[bound])
    frames = follow(2000, {t: [event('start', 0, (t - 2) / RATE),
                               event('end', 0, (t - 2) / RATE, end=t / RATE)]
                           for t in range(10, 2000, 40)})
    starts = [(t - 2) / RATE for t in range(10, 2000, 40)]
    kept = [start for start in starts if frames.get(0, start)]
    # The latest events are kept.
    assert kept == starts[-len(kept):] and 1 < len(kept) < 9
    assert frames.size <= event_frames.MAX_BYTES
    assert len(kept) == 3 or bound == 'MAX_BYTES'
    assert len(frames._recent) <= event_frames.RECENT * RATE + 1
