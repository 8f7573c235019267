# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The configs of LAPS, on small frames and with narrow models."""
import re
from pathlib import Path

import pytest
import torch
from mmaction.registry import MODELS
from mmaction.structures import ActionDataSample
from mmengine.optim import build_optim_wrapper

from mmvidattn.apis import find_config, list_models, load_config

ROOT = Path(__file__).resolve().parents[2]
NAMES = list_models('laps_*', ablations=True)
CLASSES = dict(k400=400, ucf101=101, egtea=106, motion=8)
# Frames and side of those that are not 8 x 224.
CLIPS = dict(
    laps_tiny_motion=(8, 64),
    laps_visformer_b_k400=(8, 320),
    laps_visformer_l_k400=(16, 320),
    laps_visformer_b_v1_k400=(8, 320),
    laps_visformer_l_v1_k400=(16, 320),
    laps_visformer_h_k400=(32, 320),
    laps_visformer_e_k400=(32, 360),
    laps_visformer_h_ucf101=(32, 320),
    laps_visformer_h_egtea=(32, 320),
    laps_rest_l_k400=(32, 320),
    laps_tokshift_k400=(16, 224),
    laps_table04_tokshift_mr=(8, 256),
    laps_table05_vit_ucf101=(8, 256),
    laps_table05_tokshift_ucf101=(8, 256),
    laps_table05_tokshift_l_hr_ucf101=(8, 384),
    laps_table06_tokshift_hr_egtea=(8, 384))

APART_32 = ('laps_tokshift_k400', 'laps_table04_tokshift_mr',
            'laps_table04_vit_8x32')


def _data_set(name):
    return next((k for k in CLASSES if name.endswith(k)), 'k400')


def _small_side(side):
    """224 to 64 and the others in proportion, in multiples of 16."""
    return round(side * 2 / 7 / 16) * 16


@pytest.fixture
def small(narrow):
    """Reads a config with small frames and one clip in testing."""

    def read(name):
        cfg = narrow(name)
        if name == 'laps_tiny_motion':
            return cfg
        for split in ('train', 'val', 'test'):
            for step in cfg[f'{split}_dataloader'].dataset.pipeline:
                if step.type == 'RandomRescale':
                    low = _small_side(step.scale_range[0])
                    step.scale_range = (low, 2 * low)
                elif step.type == 'Resize':
                    step.scale = (-1, _small_side(step.scale[1]))
                for key in ('size', 'crop_size'):
                    if key in step:
                        step[key] = _small_side(step[key])
                step.pop('num_clips', None)
        if 'img_size' in cfg.model.backbone:
            cfg.model.backbone.img_size = _small_side(
                cfg.model.backbone.img_size)
        return cfg

    return read


ROWS = [name for name in NAMES
        if find_config(name).parent.name == 'ablations']


@pytest.mark.parametrize('name', [n for n in NAMES if n not in ROWS])
def test_trains_a_step_and_tests_a_step(name, small, step_once):
    cfg = small(name)
    cfg.optim_wrapper.pop('accumulative_counts', None)
    frames, side = CLIPS.get(name, (8, 224))
    if name == 'laps_tiny_motion':
        assert step_once(cfg) == (6, 3, 8, 64, 64)
    else:
        side = _small_side(side)
        assert step_once(cfg) == (3, 3, frames, side, side)


@pytest.mark.parametrize('name', ROWS)
def test_row_trains_a_step(name, small):
    """On noise: their pipelines are those of the others, at other sizes."""
    cfg = small(name)
    cfg.optim_wrapper.pop('accumulative_counts')
    model = MODELS.build(cfg.model).train()
    model.init_weights()
    optim_wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
    before = model.cls_head.fc_cls.weight.clone()
    side = _small_side(CLIPS.get(name, (8, 224))[1])
    clips = torch.randint(256, (2, 1, 3, 8, side, side), dtype=torch.uint8)
    samples = [ActionDataSample().set_gt_label(label) for label in (0, 1)]
    losses = model.train_step(
        dict(inputs=list(clips), data_samples=samples), optim_wrapper)
    assert losses['loss'].isfinite()
    assert not torch.equal(model.cls_head.fc_cls.weight, before)


@pytest.mark.parametrize('name', NAMES)
def test_pipelines_differ_in_sizes_only(name):
    if name == 'laps_tiny_motion':
        pytest.skip('its pipeline is that of the motion set')
    default, cfg = load_config('laps_visformer_k400'), load_config(name)
    for split in ('train', 'val', 'test'):
        pairs = zip(default[f'{split}_pipeline'], cfg[f'{split}_pipeline'],
                    strict=True)
        for ours, other in pairs:
            differ = {k for k in ours.keys() | other.keys()
                      if ours.get(k) != other.get(k)}
            assert differ <= {'clip_len', 'frame_interval', 'scale', 'size',
                              'scale_range', 'crop_size'}


@pytest.mark.parametrize('name', NAMES)
def test_clips_model_and_data_agree(name):
    cfg = load_config(name)
    frames, side = CLIPS.get(name, (8, 224))
    backbone = cfg.model.backbone
    assert backbone.num_frames == frames
    assert backbone.get('img_size', side) == side
    told = {cfg.model.cls_head.num_classes}
    for split in ('train', 'val', 'test'):
        dataset = cfg[f'{split}_dataloader'].dataset
        assert dataset.pipeline == cfg[f'{split}_pipeline']
        told.add(dataset.num_classes)
        steps = dataset.pipeline
        assert [s.clip_len for s in steps if 'clip_len' in s] == [frames]
        if name != 'laps_tiny_motion':
            assert [s.get('crop_size', s.get('size')) for s in steps
                    if s.type.endswith('Crop')] == [side]
            apart = 32 if name in APART_32 else 8
            assert steps[1].frame_interval == apart
        folder = dict(k400='kinetics400').get(_data_set(name),
                                              _data_set(name))
        assert dataset.data_root == f'data/{folder}'
        if folder != 'motion':
            part = 'train' if split == 'train' else 'val'
            start = f'{folder}_{part}_'
            if folder == 'egtea':
                # RULSTM's names.
                start = dict(train='training1.', val='validation1.')[part]
            assert dataset.ann_file.startswith(start)
    assert told == {CLASSES[_data_set(name)]}
    if name != 'laps_tiny_motion':
        assert cfg.test_pipeline[1].num_clips == 5
        assert cfg.test_pipeline[4].type == 'ThreeCrop'


@pytest.mark.parametrize('name', NAMES)
def test_has_the_width_that_its_head_reads(name):
    with torch.device('meta'):
        backbone = MODELS.build(load_config(name).model.backbone)
    assert backbone.norm.weight.numel() == load_config(
        name).model.cls_head.in_channels


@pytest.mark.parametrize(
    'name', [name for name in NAMES if name != 'laps_tiny_motion'])
def test_is_trained_as_released(name):
    cfg = load_config(name)
    optim, sets = cfg.optim_wrapper, cfg.train_dataloader
    assert optim.accumulative_counts == 10
    assert optim.clip_grad.max_norm == 1
    assert optim.optimizer.momentum == 0.9
    assert optim.optimizer.weight_decay == 0
    assert cfg.model.cls_head.label_smooth_eps == 0.1
    assert cfg.custom_hooks == [dict(type='PreciseBNHook', num_batches=200)]
    # Rates and batches: test_released_laps_dualformer_testra.py.
    gpus = cfg.auto_scale_lr.base_batch_size / sets.batch_size
    vit = cfg.model.backbone.type == 'VisionTransformerLAPS'
    assert gpus in ((2, 4) if vit else (8, ))
    steps, = cfg.param_scheduler
    if _data_set(name) == 'egtea':
        assert (steps.milestones, steps.end) == ([20, 30], 36)
    else:
        assert (steps.milestones, steps.end) == ([10, 15], 18)
    assert steps.gamma == 0.1
    assert cfg.train_cfg.max_epochs == steps.end


# Shorter sides in training, by the side of the crop.
RESCALED = {224: (224, 360), 256: (256, 380), 320: (320, 480),
            360: (360, 540), 384: (384, 512)}
# Of others with that crop.
OTHERS = dict(rest_s=(224, 320), rest_b=(224, 320), _v1=(224, 320),
              tokshift_l_hr=(384, 480))


@pytest.mark.parametrize(
    'name', [name for name in NAMES if name != 'laps_tiny_motion'])
def test_clips_are_prepared_as_released(name):
    cfg = load_config(name)
    steps = {step.type: step for step in cfg.train_pipeline}
    side = steps['RandomCrop'].size
    other = [sides for part, sides in OTHERS.items()
             if part in name and side in (224, 384)]
    assert steps['RandomRescale'].scale_range == (
        other[0] if other else RESCALED[side])
    assert steps['PhotometricJitter'] == dict(
        type='PhotometricJitter', prob=0.1, brightness=(0.5, 2),
        saturation=(0.5, 3), gamma=(0.8, 1.2), hue=(-0.5, 0.5))
    assert steps['Flip'].flip_ratio == 0.5
    for split in ('val', 'test'):
        assert cfg[f'{split}_pipeline'][3].scale == (-1, side)
    vit = cfg.model.backbone.type == 'VisionTransformerLAPS'
    mean, std = (3 * (.5, ), 3 * (.5, )) if vit else (
        (.486, .457, .407), (.229, .224, .225))
    preprocessor = cfg.model.data_preprocessor
    assert preprocessor.mean == pytest.approx([255 * x for x in mean])
    assert preprocessor.std == pytest.approx([255 * x for x in std])


@pytest.mark.parametrize('name', [
    name for name in NAMES if name != 'laps_tiny_motion'])
def test_figures_are_those_of_a_row_of_the_paper(name, shared_dir):
    text = (shared_dir / 'papers/laps.txt').read_text()
    config = find_config(name).read_text().replace('\n# ', ' ')
    paper = re.search(r'Paper[:,] ?(.+?)(\. |;|\.?\n\n|\.?\n_base_)',
                      config)[1]
    paper = re.sub(r'Tables? [\d, andto]+', '', paper)
    figures = re.findall(r'\d+\.\d+', paper)
    assert figures
    # Table 4 has 173.0 x 15 for the 173.0 of Table 3, and no top-5 is in 3.
    for figure in figures:
        short = figure.rstrip('0').rstrip('.')
        assert re.search(rf'\b{re.escape(short)}0*\b', text), figure


@pytest.mark.parametrize('name, attention, shift', [
    ('visformer_k400', 'leap', 'periodic'),
    ('visformer_base2d_k400', '2d', 'none'),
    ('visformer_base3d_k400', '3d', 'none'),
    ('table01_plain_shift', '2d', 'plain'),
    ('table01_periodic_shift', '2d', 'periodic'),
    ('table01_leap', 'leap', 'none'),
    ('rest_s_k400', 'leap', 'periodic'), ('vit_k400', 'leap', 'periodic'),
    ('table03_rest_s_base2d', '2d', 'none'),
    ('table03_vit_base2d', '2d', 'none'),
    ('tokshift_k400', '2d', 'token'), ('table04_tokshift_mr', '2d', 'token'),
    ('table04_vit_8x32', '2d', 'none'),
    ('table05_vit_ucf101', '2d', 'none'),
    ('table05_tokshift_ucf101', '2d', 'token'),
    ('table06_vit_egtea', '2d', 'none'),
    ('table06_tokshift_egtea', '2d', 'token'),
    ('tiny_motion', 'leap', 'periodic')])
def test_has_the_attention_and_the_shift_it_names(name, attention, shift):
    backbone = load_config(f'laps_{name}').model.backbone
    assert (backbone.attention, backbone.shift) == (attention, shift)


@pytest.mark.parametrize('name', [
    'visformer_b', 'visformer_l', 'table02_r1', 'table02_r2', 'table02_r3'])
def test_older_version_differs_in_its_shift_alone(name):
    of = f'laps_{name}_k400' if 'visformer' in name else f'laps_{name}'
    v1 = f'laps_{name}_v1_k400' if 'visformer' in name else f'laps_{name}_v1'
    want = load_config(of).model.to_dict()
    want['backbone']['shift_fraction'] = 1 / 8
    assert load_config(v1).model.to_dict() == want


@pytest.mark.parametrize('name, pyramid', [
    ('visformer_k400', (1, 2, 3)), ('visformer_l_k400', (1, 2, 3, 4)),
    ('visformer_h_k400', (1, 2, 3, 4, 5)), ('table02_r1', (1, )),
    ('table02_r2', (2, )), ('table02_r3', (3, )), ('rest_b_k400', (1, 2, 3)),
    ('rest_l_k400', (1, 2, 3, 4)), ('vit_k400', (1, 2, 3, 1))])
def test_has_the_released_pyramid_and_fraction(name, pyramid):
    backbone = load_config(f'laps_{name}').model.backbone
    assert tuple(backbone.pyramid) == pyramid
    assert backbone.shift_first == 'next'
    assert backbone.shift_fraction == (1 / 8 if 'rest' in name else 1 / 4)
