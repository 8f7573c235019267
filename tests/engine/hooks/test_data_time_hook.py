# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from types import SimpleNamespace

from mmengine.structures import BaseDataElement

from mmvidattn.engine import DataTimeHook
from mmvidattn.engine.hooks import data_time_hook


def sample(**metainfo):
    result = BaseDataElement()
    result.set_metainfo(metainfo)
    return result


def test_logs_share_of_waiting_and_decode_time(monkeypatch):
    clock, messages = [0.], []
    monkeypatch.setattr(data_time_hook, 'time',
                        SimpleNamespace(perf_counter=lambda: clock[0]))
    runner = SimpleNamespace(logger=SimpleNamespace(info=messages.append))
    hook = DataTimeHook()

    def epoch(waits, steps, samples):
        hook.before_train_epoch(runner)
        for wait, step in zip(waits, steps):
            clock[0] += wait
            hook.before_train_iter(runner, 0)
            clock[0] += step
            hook.after_train_iter(runner, 0, dict(data_samples=samples))
            # Validation within an epoch does not count as waiting.
            clock[0] += 100
            hook.after_val_epoch(runner)
        hook.after_train_epoch(runner)

    epoch([1, 2], [4, 3], [sample(decode_seconds=2.5), sample(),
                           sample(decode_seconds=1.5)])
    epoch([0.5], [0.5], [sample()])
    assert messages == [
        'training waited for data in 30% of its time (3.0 of 10.0 s); a '
        'worker opened and decoded a clip in 2000.0 ms',
        'training waited for data in 50% of its time (0.5 of 1.0 s)']
