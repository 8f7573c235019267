# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from unittest.mock import Mock

import pytest
import torch
from mmaction.structures import ActionDataSample
from mmengine.hooks import Hook
from toy_runs import build, log_of

from mmvidattn.engine import SkipNanStepsHook


class SpoilHook(Hook):
    """Make some iterations fail by the given fault.

    Keep the state of torch's generator before each iteration.
    """

    def __init__(self, fault, iters):
        self.fault, self.iters = fault, iters
        self.handle = Mock()

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        self.state = torch.get_rng_state()
        if runner.iter not in self.iters:
            return
        layer = runner.model.layers[0]
        if self.fault == 'input':
            data_batch['inputs'][0][0] = torch.nan
        elif self.fault == 'output':
            self.handle = layer.register_forward_hook(
                lambda module, args, out: out * torch.inf)
        elif self.fault == 'gradient':
            self.handle = layer.weight.register_hook(
                lambda grad: grad * torch.nan)

    def after_train_iter(self, runner, *args, **kwargs):
        self.handle.remove()


def run(work_dir, fault, iters, **options):
    return build(work_dir, hooks=[SpoilHook(fault, iters)],
                 nan_guard=dict(type='SkipNanStepsHook', max_skips=2),
                 **options)


@pytest.mark.parametrize('fault', ['input', 'gradient'])
def test_skips_steps_and_names_the_files(tmp_path, fault):
    # Separate skips do not stop the run.
    runner = run(tmp_path, fault, [5, 6, 8, 9])
    model = runner.train()
    log = log_of(tmp_path)
    errors = [line for line in log.splitlines() if ' ERROR ' in line]
    assert len(errors) == 4
    for i, line in enumerate(errors[:2]):
        assert f'epoch 2, iteration {6 + i}: ' in line
        assert 'such as that of layers.0.weight' in line
        assert f'This step is skipped, {i + 1} in a row of at most 2' in line
        files = line.split('files of the batch: ')[1].split('. This')[0]
        assert len(files.split(', ')) == 3
        assert all(name.endswith('.mp4') for name in files.split(', '))
    for name, value in model.state_dict().items():
        assert value.isfinite().all(), name
    # Four steps were skipped.
    state = runner.optim_wrapper.state_dict()['state'][0]
    assert state['step'] == 16 - 4


def test_stops_with_checkpoint_before_the_fault(tmp_path):
    runner = run(tmp_path, 'output', range(5, 9),
                 checkpoint=dict(by_epoch=False, interval=5))
    with pytest.raises(RuntimeError, match=(
            r'epoch 2, iteration 8: .*layers.0.weight; files .*mp4.*'
            'Stopped after 2 skipped steps in a row; .* are saved. '
            'The first layer whose output is not finite: layers.0$')):
        runner.train()
    fifth, saved = (torch.load(tmp_path / f'{name}.pth', weights_only=True)
                    for name in ('iter_5', 'interrupted'))
    assert saved['meta']['iter'] == 7
    for name, value in saved['state_dict'].items():
        assert value.isfinite().all(), name
        assert torch.equal(fifth['state_dict'][name], value), name
    of_rank, = saved['exact_resume']['ranks']
    spoil = next(x for x in runner.hooks if isinstance(x, SpoilHook))
    assert torch.equal(of_rank['random']['torch'], spoil.state)
    # Without the fault, the run continues from there.
    runner = run(tmp_path, 'output', [], resume=True)
    runner.train()
    assert runner.iter == 16


def test_bad_gradients_are_not_saved(tmp_path):
    with pytest.raises(RuntimeError, match='are saved'):
        run(tmp_path, 'gradient', range(9),
            wrapper=dict(accumulative_counts=2)).train()
    saved = torch.load(tmp_path / 'interrupted.pth', weights_only=True)
    gradients = saved['exact_resume']['gradients']
    assert saved['meta']['iter'] % 2 == 1
    assert all(x.isfinite().all() for x in gradients.values())


@pytest.mark.parametrize('loop, bad', [('val', torch.nan),
                                       ('test', -torch.inf)])
def test_rejects_bad_predictions(loop, bad):
    check = getattr(SkipNanStepsHook(), f'after_{loop}_iter')
    samples = [ActionDataSample(
        metainfo=dict(filename=f'{i}.mp4'), pred_score=torch.zeros(5),
        gt_score=torch.full((5, ), bad)) for i in range(3)]
    outputs = [*samples, dict(loss=bad)]
    check(None, 7, None, outputs)
    samples[1].pred_score[3] = bad
    with pytest.raises(ValueError, match='pred_score of 1.mp4 '):
        check(None, 7, None, outputs)
    samples[1].set_metainfo(dict(filename=None))
    with pytest.raises(ValueError, match='pred_score of .*batch 7 '):
        check(None, 7, None, outputs)


@pytest.mark.parametrize('scales, skips', [
    # A scaler finds its scale, and a step succeeds with a small scale.
    ([4., 2., 1., 2.], 0), ([1., .5, .25, .25, .5, .25], 3)])
def test_counts_steps_that_a_loss_scaler_skips_below_scale_one(scales, skips):
    hook, runner = SkipNanStepsHook(), Mock()
    hook._report = Mock()
    for scale in scales:
        runner.optim_wrapper.loss_scaler.get_scale.return_value = scale
        hook.after_train_iter(runner)
    assert hook._report.call_count == skips
