# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Memory of a training step, against bytes counted by hand and measured."""
from functools import cache

import pytest
import torch
from mmengine.config import Config
from mmengine.model import BaseModel
from mmengine.optim import build_optim_wrapper
from torch import nn
from torch.utils.checkpoint import checkpoint

from mmvidattn.apis.memory import LiveBytes, compute_step, largest_batch
from mmvidattn.commands.memory import allocated_peak

B = 4
# Parameters of TwoLayers.
W1, B1, W2, B2 = 6 * 10, 10, 10 * 3, 3
P = W1 + B1 + W2 + B2


class TwoLayers(BaseModel):
    """Two linear layers, 6 to 10 to 3 channels."""

    def __init__(self, recompute=False):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(6, 10), nn.Linear(10, 3)
        self.register_buffer('scale', torch.ones(5))
        self.recompute = recompute

    def _hidden(self, x):
        return self.fc1(x).relu()

    def train_step(self, data, optim_wrapper):
        with optim_wrapper.optim_context(self):
            x = data['inputs']
            if self.recompute:
                x = checkpoint(self._hidden, x, use_reentrant=False)
            else:
                x = self._hidden(x)
            loss = self.fc2(x).sum()
        del x
        optim_wrapper.update_params(loss)

    def forward(self, inputs):
        return self.fc2(self._hidden(inputs))


def make_batch(model, size):
    return dict(inputs=torch.zeros(size, 6))


def config(optimizer=None, **options):
    optimizer = optimizer or dict(type='SGD', lr=0.1, momentum=0.9)
    hooks = options.pop('custom_hooks', [])
    return Config(dict(optim_wrapper=dict(optimizer=optimizer, **options),
                       custom_hooks=hooks))


def step(cfg=None, batch_size=B, like_gpu=True, **kwargs):
    return compute_step(lambda: TwoLayers(**kwargs), make_batch,
                        cfg or config(), batch_size, like_gpu)


@cache
def step_of(batch_size, recompute):
    return step(batch_size=batch_size, recompute=recompute)


def test_bytes_of_two_layers_equal_a_count_by_hand():
    memory = step()
    assert memory.parameters == memory.gradients == memory.optimizer == 4 * P
    assert memory.buffers == 4 * 5 and memory.averages == 0
    # Clips, the output of the ReLU, which two layers save, and the loss.
    kept = B * 6 + B * 10 + 1
    assert memory.activations == 4 * kept
    # The largest moment is in the ReLU: its gradients of input and output,
    # the gradients of the second layer, and the gradient of the loss.
    peak = kept + 2 * B * 10 + W2 + B2 + 1
    assert memory.peak('single', 1) == 4 * (2 * P + 5 + peak)
    # DDP has a bucket for each gradient.
    assert memory.peak('ddp', 2) == 4 * (3 * P + 5 + peak)


def test_checkpointing_keeps_only_the_clips():
    memory = step(recompute=True)
    assert memory.activations == 4 * (B * 6 + B * 10 + 1)


def test_peak_equals_the_record_of_the_allocator():
    cfg = config(dict(type='AdamW', lr=0.1))

    def train():
        model = TwoLayers()
        wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
        batch = make_batch(model, 500)
        for _ in range(2):
            model.train_step(batch, wrapper)

    # AdamW's update needs further copies of a few bytes.
    assert step(cfg, 500, like_gpu=False).peak('single', 1) == pytest.approx(
        allocated_peak(train), abs=200)


@pytest.mark.parametrize('optimizer, copies, temporary', [
    (dict(type='SGD', lr=0.1), 0, 0),
    (dict(type='SGD', lr=0.1, weight_decay=0.1), 0, 1),
    (dict(type='SGD', lr=0.1, momentum=0.9, weight_decay=0.1), 1, 1),
    (dict(type='AdamW', lr=0.1), 2, 1)])
def test_state_of_optimizers(optimizer, copies, temporary):
    memory = step(config(optimizer))
    # Each tensor of Adam has a number of steps.
    counts = 4 if copies == 2 else 0
    assert memory.optimizer == 4 * (copies * P + counts)
    gradients, others = memory.timeline[-1]
    assert others == 0
    assert gradients / (4 * P) == pytest.approx(1 + temporary, abs=0.1)


def test_averages_copy_parameters_and_buffers():
    memory = step(config(custom_hooks=[
        dict(type='EMAHook', momentum=0.1), dict(type='PreciseBNHook')]))
    assert memory.averages == 4 * (P + 5)


def test_accumulated_gradients_exist_in_the_forward_pass():
    once, twice = step(), step(config(accumulative_counts=2))
    assert once.timeline[0, 0] == 0 and twice.timeline[0, 0] == 4 * P
    assert once.gradients == twice.gradients


def test_frozen_layers_have_no_gradients():

    def build():
        model = TwoLayers()
        model.fc1.requires_grad_(False)
        return model

    memory = compute_step(build, make_batch, config(), B)
    assert memory.gradients == memory.optimizer == 4 * (W2 + B2)
    assert memory.parameters == 4 * P


def test_processes_share_all_but_activations_and_buffers():
    memory = step()
    parts = memory.parts('FullyShard', 4)
    for name in 'parameters', 'gradients', 'optimizer state':
        assert parts[name] == P
    assert parts['buffers'] == 4 * 5
    assert parts['activations'] == memory.activations
    # This model lacks units: parameters and two copies of gradients.
    assert parts['assembled units'] == 3 * 4 * P


@pytest.mark.parametrize('strategy', ['single', 'ddp', 'FullyShard'])
@pytest.mark.parametrize('recompute', [False, True])
@pytest.mark.parametrize('capacity', [1000, 4000, 9011])
def test_largest_batch_equals_a_search(strategy, recompute, capacity):
    fits = [n for n in range(1, 60) if step_of(
        n, recompute).peak(strategy, 2) <= capacity]
    assert largest_batch(
        step_of(2, recompute), step_of(3, recompute), capacity, strategy, 2
    ) == max(fits, default=0)


def test_a_storage_counts_once_while_it_exists():
    with LiveBytes() as live:
        x = torch.zeros(100)
        y = x[:50].view(5, 10)
        y += 1
        assert live.timeline[-1] == (0, 400)
        z = x.clone()
        assert live.timeline[-1] == (0, 800)
        del x, z
        kept = torch.zeros(1)
        assert live.timeline[-1] == (0, 404)
        del y
        torch.zeros(2)
        assert live.timeline[-1] == (0, 4 + 8)
        del kept


def test_rejects_steps_that_depend_on_values():

    class Model(TwoLayers):

        def _hidden(self, x):
            return super()._hidden(x) if x.sum() > 0 else x

    with pytest.raises(ValueError, match='values, got .*scalar'):
        compute_step(Model, make_batch, config(), B)


def test_measured_peak_of_a_function():

    def function():
        x = torch.zeros(1000)
        y = torch.cat([x, x])
        del x
        torch.zeros(10)
        return y

    assert allocated_peak(function) == 4 * 3000
