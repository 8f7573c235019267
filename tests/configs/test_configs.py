# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import ast
import inspect
import json
import re

import pytest
from helpers import ROOT
from mmaction.registry import MODELS

from mmvidattn.apis import list_models, load_config
from mmvidattn.apis.complexity import count_config
from mmvidattn.apis.config import list_rows
from mmvidattn.apis.view_shape import view_of
from mmvidattn.convert import SOURCES


def test_configs_contain_only_assignments():
    """Users of mmaction2 read them without our documentation."""
    paths = sorted((ROOT / 'configs').rglob('*.py'))
    assert len(paths) <= 155
    for path in paths:
        tree = ast.parse(path.read_text())
        assert {type(node) for node in tree.body} == {ast.Assign}, path
        for node in ast.walk(tree):
            assert not isinstance(node, (ast.comprehension, ast.Slice)), path
            if isinstance(node, ast.Call):
                assert ast.unparse(node.func) == 'dict', path


def test_every_model_of_the_start_weights_has_a_converter():
    page = (ROOT / 'configs/start_weights.md').read_text('utf-8')
    rows = re.findall(r'^\| `.* \| (.*)$',
                      page.partition('| model on the Hub |')[2], re.M)
    assert len(rows) > 15
    assert {*re.findall(r'`(\w+)`', ''.join(rows))} <= {*SOURCES}


def test_numbers_of_every_config_agree():
    """Check all numbers of classes, frames and sides of a config."""
    for name in list_models():
        cfg = load_config(name)
        text = json.dumps(cfg.to_dict(), default=str)

        def values(*keys):
            return {int(number) for number in re.findall(
                rf'"(?:{"|".join(keys)})": (\d+)', text)}

        assert values('num_classes') == {cfg.num_classes}, name
        for split in 'train', 'val', 'test':
            dataset = cfg[f'{split}_dataloader'].dataset
            assert cfg.get(f'{split}_pipeline', dataset.pipeline) == \
                dataset.pipeline, name
            assert dataset.data_root == cfg.data_root, name
        if 'num_frames' not in cfg:
            assert cfg.model.type == 'OnlineActionDetector'
            continue
        assert values('clip_len') == {cfg.num_frames}, name
        backbone = cfg.model.backbone
        if backbone.type != 'DualFormer' or cfg.num_frames != 16:
            assert backbone.num_frames == cfg.num_frames, name
        # Charades is tested on larger crops, as released.
        sides = values('crop_size', 'input_size', 'img_size',
                       'type": "RandomCrop", "size')
        assert sides - {256 if 'charades' in name else None} == {
            cfg.img_size}, name


@pytest.mark.parametrize('family', ['dualformer', 'laps', 'linear_ff',
                                    'testra'])
def test_paper_numbers_are_in_the_text_of_the_paper(family, shared_dir):
    text = (shared_dir / f'papers/{family}.txt').read_text()
    rows = [row for row in list_rows()
            if row.file.parents[1].name == family
            and row.table.startswith('Table') and row.paper != 'no figure']
    assert len(rows) > 15
    for row in rows:
        figures = re.findall(r'\d+\.\d+|\d+(?= G)', row.paper)
        assert figures, row.name
        if family in ('laps', 'testra'):
            # Table 4 of LAPS has 173.0 x 15 for the 173.0 of Table 3.
            for figure in figures:
                short = re.escape(figure.rstrip('0').rstrip('.'))
                assert re.search(rf'\b{short}0*\b', text), row.name
            continue

        def has_in_order(line):
            rest = iter(re.findall(r'\d+\.\d+|\d+', line))
            return all(figure in rest for figure in figures)

        assert any(map(has_in_order, text.splitlines())), row.name


# Each backbone, by a config that has its default arguments.
DEFAULTS = [
    'dualformer_tiny_k400', 'laps_rest_s_k400', 'laps_visformer_k400',
    'laps_vit_k400', 'mat_thumos14', 'miniroad_thumos14',
    'testra_box_thumos14', 'vivit_b16x2_joint_k400']


@pytest.mark.parametrize('name', DEFAULTS)
def test_defaults_equal_the_config(name):
    backbone = load_config(name).model.backbone
    if 'dualformer' in name:
        del backbone['drop_path_rate']
    for key, parameter in inspect.signature(
            MODELS.get(backbone.type)).parameters.items():
        if parameter.default is not parameter.empty and key in backbone:
            assert json.dumps(parameter.default) == json.dumps(
                backbone[key]), key


@pytest.mark.parametrize('name, options, views, gflops, mparams', [
    ('vivit_b16x2_fact_encoder_k400',
     {'model.backbone.num_temporal_layers': 0}, 1, 283.9, 86.7),
    ('dualformer_table07_patch4', None, 4, 111.99, None)])
def test_costs_match_the_paper(name, options, views, gflops, mparams):
    cfg = load_config(name, options)
    counts = count_config(cfg, view_of(cfg.test_pipeline)[0])
    # The papers also count some elementwise work and norms (see the pages).
    assert gflops / 1.011 < views * counts.macs / 1e9 < gflops
    assert mparams in (None, round(counts.params / 1e6, 1))
