# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from unittest.mock import Mock

import pytest
from mmengine.logging import MessageHub

from mmvidattn.engine import PatientStoppingHook


@pytest.mark.parametrize('training, validation, stop', [
    # At chance in training: the validations do not count.
    ([0.7] * 8, [0.5] * 8, None),
    # Learned, and no improvement in two validations.
    ([1.] * 8, [0.5] * 8, 3),
    ([0.2, 0.2, 0.2, 1., 1., 1., 1.], [0.5] * 7, 6),
    ([1.] * 5, [0.1, 0.2, 0.3, 0.4, 0.5], None)], ids=str)
def test_stops_when_learned(training, validation, stop):
    hook = PatientStoppingHook(monitor='acc/top1', min_delta=1e-4, patience=2)
    hub = MessageHub(f'{training} {validation}')
    runner = Mock(message_hub=hub, train_dataloader=range(2))
    runner.train_loop.stop_training, stopped = False, []
    for train, val in zip(training, validation):
        for accuracy in train - 0.3, train + 0.3:
            hub.update_scalar('train/top1_acc', accuracy)
        hook.after_val_epoch(runner, {'acc/top1': val})
        stopped.append(runner.train_loop.stop_training)
    assert (stopped.index(True) + 1 if any(stopped) else None) == stop
