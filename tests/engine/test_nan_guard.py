# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from types import SimpleNamespace

import pytest
import torch
from mmengine.optim import AmpOptimWrapper, OptimWrapper
from torch.optim import SGD

from mmvidattn.engine.nan_guard import NanGuard, with_nan_guard


def build(kind=OptimWrapper, **options):
    weight = torch.nn.Parameter(torch.ones(2))
    wrapper = with_nan_guard(kind)(
        optimizer=SGD([weight], lr=1.), **options)
    reports = []
    wrapper.report = lambda: reports.append(weight.grad.clone())
    return wrapper, weight, reports


def test_skips_step_with_bad_gradients():
    wrapper, weight, reports = build()
    for factor in (torch.inf, torch.nan):
        wrapper.update_params((weight * torch.tensor([factor, 1.])).sum())
    assert wrapper.skips == len(reports) == 2
    assert weight.tolist() == [1, 1]
    wrapper.update_params(weight.sum())
    assert wrapper.skips == 0 and weight.tolist() == [0, 0]


def test_step_without_gradients_is_not_skipped():
    wrapper, weight, reports = build()
    wrapper.step()
    assert not reports and weight.tolist() == [1, 1]


def test_bad_loss_makes_gradients_nan():
    wrapper, weight, reports = build()
    wrapper.update_params(weight.sum() + torch.inf)
    assert len(reports) == 1 and reports[0].isnan().all()


def test_accumulated_bad_gradients_are_skipped_once():
    wrapper, weight, reports = build(accumulative_counts=2)
    for factor in (torch.nan, 1., 1., 1.):
        wrapper.update_params(weight.sum() * factor)
    assert len(reports) == 1 and weight.tolist() == [0, 0]


@pytest.mark.parametrize('counts', [2, 3])
def test_accumulated_steps_equal_one_large_batch(counts):
    inputs = torch.randn(6, 2, generator=torch.Generator().manual_seed(0))
    plain, weight, _ = build()
    for _ in range(2):
        plain.update_params((inputs @ weight).square().mean())
    parts, accumulated, _ = build(accumulative_counts=counts)
    parts.initialize_count_status(torch.nn.Module(), 0, 2 * counts)
    for _ in range(2):
        for part in inputs.chunk(counts):
            parts.update_params((part @ accumulated).square().mean())
    torch.testing.assert_close(accumulated, weight)


@pytest.mark.parametrize('scale, steps', [(1024., 1), (0.5, 0)])
def test_loss_scaler_may_overflow_at_large_scale(scale, steps):

    class Scaling(OptimWrapper):
        steps = 0
        loss_scaler = SimpleNamespace(
            is_enabled=lambda: True, get_scale=lambda: scale)

        def step(self):
            self.steps += 1

    wrapper, weight, _ = build(Scaling)
    weight.grad = torch.full((2, ), torch.inf)
    wrapper.step()
    assert wrapper.steps == steps


def test_keeps_the_behavior_of_its_base_class():
    kind = with_nan_guard(AmpOptimWrapper)
    assert issubclass(kind, NanGuard) and issubclass(kind, AmpOptimWrapper)
    assert with_nan_guard(AmpOptimWrapper) is kind
    assert with_nan_guard(kind) is kind
    wrapper, weight, reports = build(AmpOptimWrapper, dtype='bfloat16')
    with wrapper.optim_context(torch.nn.Linear(1, 1)):
        assert (torch.ones(1, 1) @ torch.ones(1, 1)).dtype == torch.bfloat16
    wrapper.update_params(weight.sum() * torch.nan)
    assert len(reports) == 1 and weight.tolist() == [1, 1]
