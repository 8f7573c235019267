# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import ast
import inspect
import json
import re
from pathlib import Path

import pytest
import torch
from config_cache import load_config
from mmaction.registry import MODELS, TRANSFORMS
from mmengine.config import Config
from mmengine.registry import init_default_scope

from mmvidattn.apis import list_models
from mmvidattn.apis.config import list_rows
from mmvidattn.convert import SOURCES

ROOT = Path(__file__).resolve().parents[2]
VIEWS_OPTION = 'test_dataloader.dataset.pipeline.1.num_clips'


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


@pytest.mark.parametrize('name', ['derive', 'change'])
def test_removed_helpers_name_their_replacement(name, tmp_path):
    path = tmp_path / 'old.py'
    path.write_text("_base_ = 'mmvidattn::linear_ff_ssv2.py'\n\n"
                    f'from mmvidattn.utils.config import {name}\n')
    with pytest.raises(
            ValueError, match='old.py: .* removed .*num_frames=32'):
        load_config(path)


@pytest.mark.parametrize('name', [
    'linear_ff_ssv2', 'linear_ff_causal_thumos14_rgb', 'xvit_k400',
    'vivit_l16x2_fact_encoder_epic', 'dualformer_tiny_tl_k400',
    'laps_rest_s_k400', 'testra_ek100', 'miniroad_thumos14'])
def test_dumped_config_loads(name, tmp_path, monkeypatch):
    # Formatting takes most of the time, and training runs it anyway.
    monkeypatch.setattr('mmengine.config.config.FormatCode',
                        lambda text, **kwargs: (text, True))
    cfg = load_config(name)
    cfg.dump(tmp_path / 'dumped.py')
    again = Config.fromfile(tmp_path / 'dumped.py')
    assert again.to_dict() == cfg.to_dict()


@pytest.mark.parametrize('name, space, time, start', [
    ('ssv2', 1, 4, .003), ('k400', 4, 8, .01), ('k600', 4, 8, .01)])
def test_paper_network_matches_table_10(name, space, time, start):
    cfg = load_config(f'linear_ff_paper_{name}')
    backbone = cfg.model.backbone
    # A.3: radii of windows; half of the channels are not shifted.
    assert backbone.spatial_shift == dict(
        mode='cross', size=space, alpha=0.5)
    assert backbone.temporal_shift == dict(
        mode='window', size=time, alpha=0.5)
    assert (backbone.num_frames, backbone.embed_dims, backbone.num_heads,
            backbone.num_layers, backbone.order, backbone.shift_placement,
            backbone.patch_stride, backbone.attention.kernel) == (
                16, 512, 8, 12, 'space_time', 'both', 16, 'relu')
    optimizer, (schedule, ) = cfg.optim_wrapper.optimizer, cfg.param_scheduler
    assert (optimizer.lr, optimizer.weight_decay, optimizer.momentum) == (
        .035, 4e-4, .9)
    assert (cfg.train_cfg.max_epochs, schedule.warmup) == (35, 5)
    assert schedule.start_factor * optimizer.lr == pytest.approx(start)
    assert cfg.auto_scale_lr.base_batch_size == 32
    assert cfg.model.cls_head.dropout_ratio == .5
    # Everything else equals the config with the released interpretation.
    other = load_config(f'linear_ff_{name}')
    assert cfg.test_dataloader == other.test_dataloader
    assert cfg.model.cls_head == other.model.cls_head
    assert cfg.model.data_preprocessor == other.model.data_preprocessor


def test_every_model_of_the_start_weights_has_a_converter():
    page = (ROOT / 'configs/start_weights.md').read_text('utf-8')
    table = page.partition('| model on the Hub |')[2]
    rows = [line.split(' | ') for line in table.splitlines()
            if line.startswith('| `')]
    names = [row[0] for row in rows]
    assert len(rows) > 15 and len({*names}) == len(names)
    for _, _, size, _, sources in rows:
        assert int(size) > 0
        assert {*re.findall(r'`(\w+)`', sources)} <= {*SOURCES}


@pytest.mark.parametrize('name', [
    *list_models('laps_*', ablations=True), *list_models('dualformer_*')])
def test_head_channels_match_the_backbone(name):
    model = load_config(name).model
    for part in filter(None, (model, model.get('teacher'))):
        with torch.device('meta'):
            backbone = MODELS.build(part.backbone)
        assert backbone.norm.weight.numel() == part.cls_head.in_channels


@pytest.mark.parametrize('name, views', [
    ('linear_ff_ssv2', (1, 2, 3)), ('linear_ff_k400', (1, 2, 3, 4, 5, 10))])
def test_one_option_sets_the_number_of_views(name, views):
    """Numbers of views from the paper's Figure 4."""
    for num in views:
        cfg = load_config(name, {VIEWS_OPTION: num})
        step = cfg.test_dataloader.dataset.pipeline[1]
        frames = TRANSFORMS.build(step)(dict(
            total_frames=300, start_index=0))['frame_inds'].reshape(num, 16)
        starts = frames[:, 0].tolist()
        assert len(set(map(tuple, frames.tolist()))) == num
        if name == 'linear_ff_k400':
            # 300 - 256 frames, in equal steps from the first frame.
            assert starts == [int(44 * k / num) for k in range(num)]
        else:
            # The middle of the first segment, its start, its end.
            assert starts == [9, 0, 19][:num]
        family = name.rpartition('_')[0]
        page = (ROOT / f'configs/{family}/README.md').read_text()
        assert f'{VIEWS_OPTION}=' in page


def test_numbers_of_every_config_agree():
    """Check all numbers of classes, frames and sides of a config."""
    for name in list_models():
        cfg = load_config(name).to_dict()
        results = {}

        def visit(value, key=''):
            for inner, item in value.items() if isinstance(
                    value, dict) else enumerate(value):
                inner = f'{key}.{inner}'
                if isinstance(item, (dict, list)):
                    visit(item, inner)
                else:
                    results[inner] = item

        visit(cfg)

        def values(*ends):
            return {value for key, value in results.items()
                    if key.endswith(ends)}

        assert values('.num_classes') == {cfg['num_classes']}, name
        backbone = cfg['model']['backbone']
        for split in 'train', 'val', 'test':
            dataset = cfg[f'{split}_dataloader']['dataset']
            if f'{split}_pipeline' in cfg:
                assert cfg[f'{split}_pipeline'] == dataset['pipeline'], name
            assert dataset['data_root'] == cfg['data_root'], name
        if 'num_frames' not in cfg:
            assert cfg['model']['type'] == 'OnlineActionDetector'
            continue
        assert values('.clip_len') == {cfg['num_frames']}, name
        if backbone['type'] != 'DualFormer' or cfg['num_frames'] != 16:
            assert backbone['num_frames'] == cfg['num_frames'], name
        sides = {value for key, value in results.items() if key.endswith(
            ('.crop_size', '.size', '.input_size', '.img_size'))
            and '_shift.' not in key}
        # Charades is tested on larger crops, as released.
        assert sides - {256 if 'charades' in name else None} == {
            cfg['img_size']}, name


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


# Config, and the options that differ from the defaults.
DEFAULTS = {
    'dualformer_tiny_k400': ('drop_path_rate', ),
    'laps_rest_s_k400': (),
    'laps_visformer_k400': (),
    'laps_vit_k400': (),
    'mat_thumos14': (),
    'miniroad_thumos14': (),
    'testra_box_thumos14': (),
    'vivit_b16x2_joint_k400': (),
}


@pytest.mark.parametrize('name', DEFAULTS)
def test_defaults_equal_the_config(name):
    """The default arguments of a backbone are the values of a config."""
    init_default_scope('mmaction')
    backbone = load_config(name).model.backbone
    parameters = inspect.signature(MODELS.get(backbone.type)).parameters
    defaults = {key: parameter.default
                for key, parameter in parameters.items()
                if parameter.default is not parameter.empty}
    changed = {key for key in defaults.keys() & backbone.keys()
               if json.dumps(defaults[key]) != json.dumps(backbone[key])}
    assert changed == {*DEFAULTS[name]}
