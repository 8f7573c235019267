# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Sources that share a machine, and the lock that they take in turn."""
import threading
import time

import pytest
from live_fixtures import Script, wait_until

from mmvidattn.live import FeatureStreamModel, StreamRun
from mmvidattn.live.features import FairLock, FeatureExtractor


def test_threads_get_the_lock_in_order():
    lock, turns = FairLock(), []

    def work(name):
        with lock:
            turns.append(name)

    with lock:
        threads = []
        for name in range(20):
            threads.append(threading.Thread(target=work, args=(name, )))
            threads[-1].start()
            wait_until(lambda: len(lock._turns) == name + 2)
    for thread in threads:
        thread.join()
    assert turns == list(range(20))


def test_one_thread_holds_the_lock():
    lock, inside, most = FairLock(), [0], [0]

    def work():
        for _ in range(200):
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0)
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_interrupted_wait_passes_the_turn_on(monkeypatch):
    def wait(self, timeout=None):
        raise KeyboardInterrupt

    lock = FairLock()
    with lock, monkeypatch.context() as patch:
        patch.setattr(threading.Condition, 'wait', wait)
        with pytest.raises(KeyboardInterrupt):
            lock.__enter__()
    with lock:
        pass


@pytest.fixture(scope='module')
def model(files):
    return FeatureStreamModel(*files)


class Camera(Script):
    """Live source with its own rate; it may block after its frames."""

    def __init__(self, fps, seconds, blocks=False):
        super().__init__(range(round(fps * seconds)), live=True)
        self.fps, self.blocks = fps, blocks

    def _frames(self):
        first = time.monotonic()
        for frame in super()._frames():
            wait = first + frame.index / self.fps - time.monotonic()
            if self._stopped.wait(max(0, wait)):
                return
            yield frame
        if self.blocks:
            # Block, like a read that does not return.
            while not self._stopped.wait(60):
                pass


def follow(run, found):
    for detection in run:
        found.append((detection.step, time.monotonic()))


def start(*runs):
    results = [[] for _ in runs]
    threads = [threading.Thread(target=follow, args=pair, daemon=True)
               for pair in zip(runs, results)]
    for thread in threads:
        thread.start()
    return threads, results


def test_stalled_source_does_not_delay_the_rest(model):
    stalls = StreamRun(model, Camera(12, 0.5, blocks=True))
    working = StreamRun(model, Camera(24, 1.5))
    threads, (first, result) = start(stalls, working)
    threads[1].join()
    assert threads[0].is_alive() and len(first) == 2
    stalls.stop()
    threads[0].join()
    steps, _ = zip(*result)
    # A busy machine may drop some steps.
    assert steps[-1] == 5 and steps == tuple(sorted(set(steps)))
    assert len(steps) + working.dropped + working.missing == 6


def test_sources_of_different_rates_get_their_share(model, monkeypatch):
    """Recordings that never wait do not starve a camera."""
    features = FeatureExtractor.features

    def slow(self, clips):
        # Hold the lock for some time, like a large network.
        with self._lock:
            time.sleep(0.04)
        return features(self, clips)

    monkeypatch.setattr(FeatureExtractor, 'features', slow)
    hogs = [StreamRun(model, Script(range(10 ** 6))) for _ in range(3)]
    camera = StreamRun(model, Camera(12, 2))
    threads, results = start(camera, *hogs)
    threads[0].join()
    for run in hogs:
        run.stop()
    for thread in threads:
        thread.join()
    done = [len(result) for result in results]
    # Recordings share the machine evenly, and the camera gets its share.
    assert min(done[1:]) > 0.5 * max(done[1:])
    assert done[0] + camera.dropped + camera.missing == 8
    assert done[0] >= min(8, min(done[1:]) // 2)
