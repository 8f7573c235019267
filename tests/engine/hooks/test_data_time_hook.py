# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from types import SimpleNamespace

from mmengine.structures import BaseDataElement

from mmvidattn.engine import DataTimeHook
from mmvidattn.engine.hooks import data_time_hook


def sample(**metainfo):
    found = BaseDataElement()
    found.set_metainfo(metainfo)
    return found


def test_shares_are_of_what_passed(monkeypatch):
    clock, said = [0.], []
    monkeypatch.setattr(data_time_hook, 'time',
                        SimpleNamespace(perf_counter=lambda: clock[0]))
    runner = SimpleNamespace(logger=SimpleNamespace(info=said.append))
    hook = DataTimeHook()

    def epoch(waits, steps, samples):
        hook.before_train_epoch(runner)
        for wait, step in zip(waits, steps):
            clock[0] += wait
            hook.before_train_iter(runner, 0)
            clock[0] += step
            hook.after_train_iter(runner, 0, dict(data_samples=samples))
            # Validation within an epoch is no waiting.
            clock[0] += 100
            hook.after_val_epoch(runner)
        hook.after_train_epoch(runner)

    epoch([1, 2], [4, 3], [sample(decode_seconds=2.5), sample(),
                           sample(decode_seconds=1.5)])
    epoch([0.5], [0.5], [sample()])
    assert said == [
        '30% of the time of training steps went to waiting for data (3.0 of '
        '10.0 s); opening and decoding a clip took 2000.0 ms of a worker',
        '50% of the time of training steps went to waiting for data (0.5 of '
        '1.0 s)']


def test_an_epoch_without_steps_says_nothing():
    hook = DataTimeHook()
    hook.before_train_epoch(None)
    hook.after_train_epoch(None)
