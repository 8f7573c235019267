# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import math

import pytest
import torch
from mmaction.registry import PARAM_SCHEDULERS

from mmvidattn.apis import load_config


def _rates(lr, steps, epoch_length=1, **options):
    """Return the rates of all steps with a scheduler."""
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=lr)
    scheduler = PARAM_SCHEDULERS.build(options, default_args=dict(
        optimizer=optimizer, epoch_length=epoch_length))
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]['lr'])
        optimizer.step()
        scheduler.step()
    return rates


@pytest.mark.parametrize('name, config', [
    ('thumos_testra_box', 'testra_box_thumos14'),
    ('ek100_testra_box', 'testra_box_ek100')])
def test_configs_have_released_schedule(shared_dir, name, config):
    G = json.loads((shared_dir / 'goldens/testra/golden_lr.json').read_text())
    expected, cfg = G[name], load_config(config)
    lr = cfg.optim_wrapper.optimizer.lr
    assert lr == expected['base_lr']
    assert cfg.train_cfg.max_epochs == cfg.param_scheduler.end == \
        expected['epochs']
    want = expected['lr_used_by_step']
    assert _rates(lr, len(want), expected['iters_per_epoch'],
                  **cfg.param_scheduler) == pytest.approx(want, rel=1e-5)


def test_product_is_cosine_times_warm_up():
    got = _rates(2., 12, type='WarmupCosineLR', warmup=4, end=10,
                 start_factor=0.2, by_epoch=False)
    assert got == pytest.approx([
        min(1, 0.2 + 0.8 * i / 4) * (1 + math.cos(math.pi * min(i, 10) / 10))
        for i in range(1, 13)], abs=1e-12)


@pytest.mark.parametrize('name, base, start, epochs, expected', [
    # Shares of the base rate at epochs 5, 10, 20 and 30.
    ('linear_ff_ssv2', .03, .003, 35, (.950, .812, .389, .050)),
    ('linear_ff_k400', .035, .01, 35, (.950, .812, .389, .050)),
    ('linear_ff_released_k400', .035, .01, 40, (.962, .854, .5, .146)),
    ('xvit_k400', .03, .01, 30, (.933, .75, .25, 0))])
def test_line_ends_on_cosine_of_all_epochs(
        name, base, start, epochs, expected):
    cfg = load_config(name)
    lr = cfg.optim_wrapper.optimizer.lr
    assert lr == base and cfg.train_cfg.max_epochs == epochs
    length, (options, ) = 7, cfg.param_scheduler
    got = _rates(lr, epochs * length + 1, length, **options)
    assert got[0] == pytest.approx(start)
    for epoch, share in zip((5, 10, 20, 30), expected):
        assert got[epoch * length] / base == pytest.approx(share, abs=5e-4)
    # The warm-up is straight, and never reaches the base rate.
    middle = (got[0] + got[5 * length]) / 2
    assert (got[17] + got[18]) / 2 == pytest.approx(middle)
    assert max(got) == got[5 * length] < base


@pytest.mark.parametrize('kwargs, message', [
    (dict(warmup=6, begin=5, end=10), 'between 0 and end - begin = 5, got 6'),
    (dict(warmup=-1, end=10), 'warmup must be a non-negative number'),
])
def test_rejects_options(kwargs, message):
    with pytest.raises(ValueError, match=message):
        _rates(1., 1, type='WarmupCosineLR', **kwargs)
