# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Ablation rows of ViViT: configs, and options of configs."""
import re
from pathlib import Path

import pytest
import yaml
from config_cache import load_config

from mmvidattn.apis.complexity import count_config, view_of

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / 'configs/vivit/ablations'
TABLES = yaml.safe_load((FOLDER / 'page.yml').read_text())['tables']


def _options(pairs):
    return {k: yaml.safe_load(v) for k, v in (x.split('=') for x in pairs)}


# Numbers of the paper's tables, in the order of the rows.
PAPER = {
    'Table 1': [78.5, 73.2, 77.6, 79.2],
    'Table 2': [80.0, 455.2, 88.9, 78.8, 284.4, 115.1, 77.4, 372.3, 117.3,
                76.3, 277.1, 88.9, 75.8, 283.9, 86.7,
                43.1, 43.7, 39.1, 39.5, 38.8],
    'Preprint, Table 3': [75.8, 78.6, 78.8, 78.8, 78.9],
    'Table 3': [38.4, 39.6, 40.2, 41.1, 43.1, 43.7],
    'Figure 6': [],
    'Table 4': [80.3, 1446, 80.7, 2919, 81.0, 3992],
    'Preprint, Figure 7': [80.0, 455.2, 80.3, 1446],
    'Figure 7': [995.3, 3980.4],
    'Table 5': [80.6, 92.7, 3.98, 81.7, 93.8, 11.94, 83.5, 94.3, 11.94,
                84.9, 95.8, 47.77, 82.9, 94.6, 84.3, 94.9, 85.8, 96.5],
}


def test_page_has_the_paper_numbers_in_order():
    tables = {}
    for line in (FOLDER / 'README.md').read_text().splitlines():
        if line.startswith('## '):
            figures = tables.setdefault(line[3:].split(':')[0], [])
        elif line.startswith('| ') and not line.startswith('| row'):
            figures += map(float, re.findall(r'\d+\.\d+|\d{4}',
                                             line.split(' | ')[2]))
    assert PAPER == {name: tables[name] for name in TABLES}


@pytest.mark.parametrize('name, options, gflops, mparams', [
    ('vivit_b16x2_fact_encoder_k400',
     ('model.backbone.num_temporal_layers=0', ), 283.9, 86.7),
    ('vivit_table04_crop288', (), 2919, None),
    ('vivit_table04_crop320', (), 3992, None),
    ('vivit_table05_128_frames_k400', (), 3980.4, None),
    ('vivit_table05_h14x2_k400', (), 47770 / 12, None)])
def test_costs_match_the_paper(name, options, gflops, mparams):
    cfg = load_config(name, _options(options))
    counts = count_config(cfg, view_of(cfg.test_pipeline)[0])
    # The paper adds half of the elementwise work (see the page).
    assert gflops / 1.011 < counts.macs / 1e9 < gflops
    if mparams is not None:
        assert round(counts.params / 1e6, 1) == mparams
