# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Ablation rows of ViViT: configs, and options of configs."""
import copy
import re
from itertools import combinations
from pathlib import Path

import pytest
import torch
import yaml
from config_cache import load_config
from mmaction.registry import MODELS

from mmvidattn.apis.complexity import count_config, view_of
from mmvidattn.apis.config import apply_options
from mmvidattn.convert import convert

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
    counts, _ = count_config(cfg, view_of(cfg.test_pipeline)[0])
    # The paper adds half of the elementwise work (see the page), and more for
    # encoders of 128 frames for an unknown reason.
    assert counts.flops / 2e9 == pytest.approx(
        gflops, rel=6e-3 if '128' in name else 2e-3)
    assert gflops / 1.011 < counts.macs / 1e9 < gflops
    if mparams is not None:
        assert round(counts.params / 1e6, 1) == mparams


@pytest.mark.parametrize('options, shares', [
    ([], [0, 0, 1, 0]),
    (['model.backbone.patch_init=average'], 4 * [.25]),
    (['model.backbone.patch_init=random'], None)])
def test_table_1_initializes_tubelets_as_named(options, shares, narrow,
                                               tmp_path):
    cfg = narrow('vivit_table01_central_frame')
    apply_options(cfg, _options(options))
    projection = _from_an_image(cfg, tmp_path)
    frames = projection.weight.unbind(2)
    if shares is None:
        assert all(frame.std() > 0 for frame in frames)
        # Frames are independent of each other and of the image patch.
        for one, other in combinations([*frames, IMAGE_PATCH], 2):
            cosine = torch.cosine_similarity(
                one.flatten(), other.flatten(), dim=0)
            assert abs(cosine) < 0.1
    else:
        for frame, share in zip(frames, shares, strict=True):
            assert torch.equal(frame, share * IMAGE_PATCH)


def test_table_1_samples_eight_frames_with_image_patches(narrow, tmp_path):
    cfg = narrow('vivit_table01_uniform_sampling')
    projection = _from_an_image(cfg, tmp_path)
    assert torch.equal(projection.weight[:, :, 0], IMAGE_PATCH)
    backbone = load_config('vivit_table01_uniform_sampling').model.backbone
    tubelets = load_config('vivit_table01_central_frame').model.backbone
    with torch.device('meta'):
        grids = [MODELS.build(x).encoder.pos_embed.shape
                 for x in (backbone, tubelets)]
    assert grids == 2 * [(1, 8, 14, 14, 768)]


IMAGE_PATCH = torch.randn(32, 3, 16, 16,
                          generator=torch.Generator().manual_seed(0))


def _from_an_image(cfg, folder):
    """Return the projection of a model with image ViT start weights."""
    image = {'patch_embed.proj.weight': IMAGE_PATCH,
             'patch_embed.proj.bias': torch.ones(32),
             'pos_embed': torch.zeros(1, 17, 32),
             'cls_token': torch.zeros(1, 1, 32)}
    path = folder / 'vit.pth'
    torch.save(dict(state_dict=convert('vivit_image', image)), path)
    cfg.model.backbone.init_cfg = dict(
        type='Pretrained', checkpoint=str(path))
    torch.manual_seed(1)
    backbone = MODELS.build(cfg.model.backbone)
    backbone.init_weights()
    projection = backbone.patch_embed.projection
    assert torch.equal(projection.bias, torch.ones(32))
    return projection.requires_grad_(False)


@pytest.mark.parametrize('row, changes', [
    ('fact_encoder', dict(model='fact_encoder', num_temporal_layers=4)),
    ('joint', dict(model='joint', num_temporal_layers=None)),
    ('fact_attention', dict(model='fact_attention',
                            num_temporal_layers=None)),
    ('fact_dot', dict(model='fact_dot', num_temporal_layers=None))])
def test_table_2_uses_the_epic_recipe_for_every_model(row, changes):
    cfg = load_config(f'vivit_table02_{row}_epic').to_dict()
    want = load_config('vivit_l16x2_fact_encoder_epic').to_dict()
    want['model']['backbone'].update(arch='B', **changes)
    want['model']['cls_head']['in_channels'] = 768
    assert cfg == want


# Stochastic depth, RandAugment, label smoothing, mixup.
@pytest.mark.parametrize('name, parts', [
    ('vivit_table03_augmentation', (0., False, 0., None)),
    ('vivit_table03_stochastic_depth', (0.2, False, 0., None)),
    ('vivit_table03_rand_augment', (0.2, True, 0., None)),
    ('vivit_table03_label_smoothing', (0.2, True, 0.2, None)),
    ('vivit_table02_fact_encoder_epic', (0.2, True, 0.2, 0.1))])
def test_table_3_adds_regularization_step_by_step(name, parts):
    cfg = load_config(name)
    steps = [step.type for step in cfg.train_dataloader.dataset.pipeline]
    assert {'ScaleJitter', 'RandomCrop', 'Flip'} < set(steps)
    strong = 'ScenicRandAugment' in steps
    assert strong != ('ScenicColorJitter' in steps)
    blending = cfg.model.data_preprocessor.blending
    assert parts == (cfg.model.backbone.drop_path_rate, strong,
                     cfg.model.cls_head.label_smooth_eps,
                     blending and blending.alpha)
    # Everything else is equal.
    want = load_config('vivit_table02_fact_encoder_epic')
    for each in cfg, want:
        each.model.backbone.drop_path_rate = 0.
        each.model.cls_head.label_smooth_eps = 0.
        each.model.data_preprocessor.blending = None
        each.train_dataloader.dataset.pipeline = None
    for key in ('model', 'train_dataloader', 'val_dataloader',
                'test_dataloader', 'optim_wrapper', 'param_scheduler',
                'train_cfg', 'test_evaluator'):
        assert cfg[key] == want[key], key


@pytest.mark.parametrize('name, base, changes', [
    ('table01_central_frame', 'b16x2_joint_k400',
     dict(tubelet_frames=4, patch_init='central')),
    ('table01_uniform_sampling', 'b16x2_joint_k400',
     dict(tubelet_frames=1, sampled_frames=8)),
    ('table04_crop288', 'l16x2_joint_k400', dict(img_size=288)),
    ('table04_crop320', 'l16x2_joint_k400', dict(img_size=320)),
    ('table05_128_frames_k400', 'l16x2_fact_encoder_k400',
     dict(num_frames=128)),
    ('table05_128_frames_k600', 'l16x2_fact_encoder_k600',
     dict(num_frames=128)),
    ('table05_h14x2_k400', 'l16x2_joint_k400',
     dict(arch='H', patch_size=14)),
    ('table05_h14x2_k600', 'l16x2_fact_encoder_k600',
     dict(arch='H', patch_size=14, model='joint', num_temporal_layers=None))])
def test_row_changes_only_the_named_options(name, base, changes):
    cfg, want = load_config(f'vivit_{name}'), load_config(f'vivit_{base}')
    model = copy.deepcopy(want.model.to_dict())
    model['backbone'].update(changes)
    if 'h14' in name:
        model['cls_head']['in_channels'] = 1280
    assert cfg.model.to_dict() == model
    # test_configs.py tests crop sizes and clip lengths.
    short = dict(crop288=329, crop320=366).get(name[8:], 256)
    for split in 'train', 'val', 'test':
        assert cfg[f'{split}_pipeline'][3].scale == (-1, short)
    assert cfg.test_pipeline[1].num_clips == (1 if '128' in name else 4)
    for key in ('optim_wrapper', 'param_scheduler', 'train_cfg'):
        assert cfg[key] == want[key]


@pytest.mark.parametrize('depth', [0, 1, 8, 12])
def test_option_sets_the_number_of_temporal_blocks_of_model_2(depth):
    cfg = load_config('vivit_b16x2_fact_encoder_k400',
                      {'model.backbone.num_temporal_layers': depth})
    with torch.device('meta'):
        encoder = MODELS.build(cfg.model.backbone).encoder
    assert (0 if encoder.temporal is None else len(
        encoder.temporal.blocks)) == depth
    assert len(encoder.blocks) == 12
