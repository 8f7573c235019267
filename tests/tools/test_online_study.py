# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import runpy
from pathlib import Path

import pytest

from mmvidattn.apis import load_config

TOOL = Path(__file__).parents[2] / 'tools/studies/online_synthetic.py'


@pytest.fixture(scope='module')
def study():
    return runpy.run_path(str(TOOL))


def result(**metrics):
    found = {f'online/AP_dense_{kind}_{i}': value
             for kind, value in metrics.items() for i in range(2)}
    return dict(memory='box', mixclip='on', seed=3, seconds=90,
                metrics={**found, 'online/mAP_dense@mean': 0.5})


def test_rows_change_memory_and_mixclip_alone(study):
    base = load_config('testra_tiny_synthetic').model.backbone
    rows = study['rows']()
    assert len(rows) == len({*rows}) == 10
    assert {memory for memory, _ in rows} == {
        *study['MEMORIES'], *study['RIVALS']}
    wanted = {
        'Laplace, 0.97': {}, 'box': dict(decay=1),
        'LSTR': dict(decay=1, fusion='none', long_memory_pos_embed=True),
        'none': dict(long_memory_length=0)}
    for memory, changes in study['MEMORIES'].items():
        options = {}
        for option in changes:
            key, _, value = option.partition('=')
            options[key] = {'True': True}.get(
                value, int(value) if value.isdigit() else value)
        cfg = load_config('testra_tiny_synthetic', options)
        assert cfg.model.backbone == {**base, **wanted[memory]}
        for split in 'train', 'val', 'test':
            data = cfg[f'{split}_dataloader'].dataset
            assert data.long_steps // data.long_rate == \
                cfg.model.backbone.long_memory_length
            assert data.get('stretch_long_memory', False) == (
                memory == 'LSTR')


def test_rivals_have_the_streams_and_steps_of_the_others(study):
    base = load_config('testra_tiny_synthetic')
    for name, config in study['RIVALS'].items():
        cfg = load_config(config)
        assert cfg.train_cfg == base.train_cfg
        assert cfg.optim_wrapper == base.optim_wrapper
        assert cfg.model.backbone.in_channels == \
            base.model.backbone.in_channels
        assert cfg.model.backbone.embed_dims == base.model.backbone.embed_dims
        mixes = any(step.type == 'MixClip'
                    for step in cfg.train_dataloader.dataset.pipeline)
        assert (name, 'on' if mixes else 'off') in study['rows']()


def test_report_averages_each_kind(study):
    text = study['report']([result(now=0.9, recent=0.8, long=0.25)])
    assert text.splitlines()[-1] == (
        '| box | on | 3 | 90.0 | 80.0 | 25.0 | 50.0 | 1.5 |')
    plain = result(now=0.9, recent=0.8, long=0.25)
    plain['metrics'].pop('online/mAP_dense@mean')
    assert study['report']([plain]).splitlines()[-1] == (
        '| box | on | 3 | 90.0 | 80.0 | 25.0 | - | 1.5 |')


def test_what_is_finished_is_kept(run_main, study, tmp_path, capsys):
    results = tmp_path / 'results'
    results.mkdir()
    path = study['result_file'](tmp_path, 'box', 'on', 3)
    path.write_text(json.dumps(result(now=0.9, recent=0.8, long=0.25)))
    run_main('studies/online_synthetic.py', '--out', tmp_path, '--rows', 1,
             '--seeds', 3)
    assert '| box | on | 3 |' in capsys.readouterr().out
    assert (tmp_path / 'report.md').is_file()
