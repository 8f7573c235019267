# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import ast
import inspect
import json
import re
from pathlib import Path

import pytest
import torch
from mmaction.registry import MODELS, TRANSFORMS
from mmengine.config import Config
from mmengine.registry import init_default_scope

from mmvidattn.apis import list_models, load_config
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


def test_every_model_of_the_start_weights_has_a_converter():
    page = (ROOT / 'configs/start_weights.md').read_text('utf-8')
    rows = re.findall(r'^\| `.* \| (.*)$',
                      page.partition('| model on the Hub |')[2], re.M)
    assert len(rows) > 15
    assert {*re.findall(r'`(\w+)`', ''.join(rows))} <= {*SOURCES}


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
