# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import io
from types import SimpleNamespace

import pytest

from mmvidattn.finetune import training
from mmvidattn.finetune.training import ConsoleHook


class Screen(io.StringIO):

    def __init__(self, is_terminal):
        super().__init__()
        self.isatty = lambda: is_terminal


def train(stream, epochs=2, steps=4):
    """Call the hook like a run that validates in the last epoch."""
    hook = ConsoleHook(stream)
    runner = SimpleNamespace(
        iter=0, epoch=0, max_epochs=epochs, max_iters=epochs * steps, hooks=[],
        train_dataloader=range(steps))
    hook.before_train(runner)
    for runner.epoch in range(epochs):
        hook.before_train_epoch(runner)
        for step in range(steps):
            hook.after_train_iter(runner, step, outputs=dict(
                loss=step, top1_acc=0.5))
            runner.iter += 1
    hook.after_val_epoch(runner, {'acc/top1': 0.75})
    hook.after_train(runner)
    return stream.getvalue()


def test_prints_a_line_per_epoch_to_a_file():
    first, second = train(Screen(False)).splitlines()
    assert first.startswith('epoch 1/2, ')
    assert first.endswith(' s left, loss 1.500, training 50 %')
    assert second.startswith('epoch 2/2, 0 s left, ')
    assert second.endswith('validation 75 %')


def test_draws_a_bar_in_a_terminal(monkeypatch):
    monkeypatch.setattr(training, 'INTERVAL', 0.)
    lines = train(Screen(True)).split('\n')
    assert len(lines) == 3 and not lines[2]
    parts = [part.split(']')[0] for part in lines[0].split('\r')[1:]]
    assert parts == ['[###.........', '[######......', '[#########...',
                     '[############', '[############']
    assert all(len(part) <= 79 for line in lines for part in line.split('\r'))


@pytest.mark.parametrize('outputs', [dict(loss=1.), dict(loss=2., other=1)])
def test_needs_no_accuracy(outputs):
    stream = Screen(False)
    hook = ConsoleHook(stream)
    runner = SimpleNamespace(iter=0, epoch=9, max_epochs=10, max_iters=10,
                             hooks=[], train_dataloader=range(1))
    hook.before_train(runner)
    hook.before_train_epoch(runner)
    hook.after_train_iter(runner, 0, outputs=outputs)
    hook.end_line()
    assert stream.getvalue().startswith('epoch 10/10, ')
    assert 'training' not in stream.getvalue()
