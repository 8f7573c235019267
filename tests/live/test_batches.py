# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Sources that share a model, and are scored in batches."""
import threading
import time
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from live_fixtures import Hanging, Script

from mmvidattn.live import StreamRun
from mmvidattn.live.features import FeatureExtractor
from mmvidattn.live.scorers import SessionPool
from mmvidattn.online import StreamSession


def start(*runs):
    """Iterate over runs in threads; return these and the detections."""
    results = [[] for _ in runs]
    threads = [threading.Thread(target=result.extend, args=[run], daemon=True)
               for run, result in zip(runs, results)]
    for thread in threads:
        thread.start()
    return threads, results


def join(threads):
    for thread in threads:
        thread.join()


def test_sources_are_scored_in_batches(model, monkeypatch):
    sizes = []
    push = StreamSession.push_many

    def record(sessions, frames):
        sizes.append(len(sessions))
        time.sleep(.02)
        return push(sessions, frames)

    # A gap, and sources of different lengths.
    indices = [[*range(36)], [*range(6, 30)], [*range(9), *range(30, 48)],
               [*range(18)]]
    alone = [list(StreamRun(model, Script(each))) for each in indices]
    monkeypatch.setattr(StreamSession, 'push_many', staticmethod(record))
    threads, together = start(*(
        StreamRun(model, Script(each)) for each in indices))
    join(threads)
    assert sum(sizes) == sum(map(len, alone))
    # The longest source has 12 steps.
    assert len(sizes) < 20 and sizes.count(4) > 3
    for got, want in zip(together, alone):
        assert [d.step for d in got] == [d.step for d in want]
        np.testing.assert_allclose([d.scores for d in got],
                                   [d.scores for d in want], atol=1e-5)


def test_error_of_one_source_does_not_end_the_rest(model, monkeypatch):
    features_of = FeatureExtractor.features_of

    def fail(self, samples):
        time.sleep(.02)
        if any(sample == 'bad' for sample in samples):
            raise ValueError('bad sample')
        return features_of(self, samples)

    monkeypatch.setattr(FeatureExtractor, 'features_of', fail)
    good = [StreamRun(model, Script(range(24))) for _ in range(2)]
    bad = StreamRun(model, Script(range(24)))
    sample = bad._scorer._sample
    bad._scorer._sample = lambda step: (
        sample(step) if step.number < 3 else (dict(rgb='bad'), {}))
    threads, results = start(*good)
    with pytest.raises(ValueError, match='bad sample'):
        list(bad)
    join(threads)
    assert [len(result) for result in results] == [8, 8]


def test_stalled_source_does_not_delay_the_rest(model):
    stalls = Hanging(range(6))
    working = StreamRun(model, Script(range(36), live=True, wait=1 / 24))
    threads, (first, result) = start(StreamRun(model, stalls), working)
    threads[1].join()
    assert threads[0].is_alive() and len(first) == 2
    stalls.released.set()
    join(threads)
    steps = [detection.step for detection in result]
    # A busy machine may drop some steps.
    assert steps[-1] == 11 and steps == sorted(set(steps))
    assert len(steps) + working.dropped + working.missing == 12


def test_interrupt_of_one_source_does_not_block_the_rest(model):
    """Ctrl-C reaches the source that waits for the other to fill a batch."""
    pool = SessionPool(StreamSession(model.model))
    first, second = pool.session.spawn(), pool.session.spawn()
    sample = {name: torch.zeros(x[0])
              for name, x in pool.session.step.frame_shapes.items()}
    pool._changed.wait_for = Mock(side_effect=[True, KeyboardInterrupt])
    with pytest.raises(KeyboardInterrupt):
        pool.score(first, sample, False)
    del pool._changed.wait_for
    thread = threading.Thread(
        target=pool.score, args=(second, sample, False), daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    assert (first.num_steps, second.num_steps) == (0, 1)
