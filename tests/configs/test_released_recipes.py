# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compare resolved configs with the released recipes, value by value.

Covers the linear video transformer (LVT), XViT and ViViT. The values come
from the released yamls, launch scripts and data code. Known differences:

* All: start weights, which init_cfg or load_from sets; LVT's are unpublished.
* LVT, XViT: released validation has the random crop and flip of training (for
  XViT on Something-Something, every 5 epochs). Released videos are resampled
  to 30 frames/s (Kinetics: only with a list of rates) and resized to a height
  of 256 beforehand; ours are resized after reading. Frames are normalized as
  floats before resizing; ours as bytes after it. Random erasing redraws boxes
  that do not fit and fills with 127.5; ours clips them, and fills with 128.
  The temporal table has 8 frames, read cyclically; ours has 16. The gate and
  the neighbors of "k400" and "k400_21k" are the code's defaults of that time.
* ViViT: released gradients are clipped per device; ours as their mean. The
  warm-up starts at 0; ours at a thousandth of the rate. Mixup uses the
  reversed batch; ours a permutation. Color jitter works on normalized floats;
  ours on bytes. The frame rate of the released TFRecords is unknown.
"""
from typing import NamedTuple

import pytest
from config_cache import load_config
from mmaction.registry import MODELS
from mmengine.optim import build_optim_wrapper
from mmengine.registry import init_default_scope

from mmvidattn.apis import list_models


class Run(NamedTuple):
    """Released run of LVT or XViT, with its batch size."""
    source: str
    batch: int
    rate: float
    start: float
    epochs: int
    decay: float
    clips: int
    # Temporal shift: divisor and frames of a segment.
    time: tuple
    # Spatial shift, as in the config.
    space: dict | None
    # Inputs of the gate, and whether Q and K share it.
    gate: tuple | None


EIGHT, CROSS = dict(mode='eight', size=1), dict(
    mode='cross', size=4, divisor=8)
RUNS = dict(
    linear_ff_ssv2=Run(
        'LVT lxvitv2_B16_16x16', 32, .03, .003, 35, 1e-4, 2, (4, 16), EIGHT,
        ('qkv', True)),
    linear_ff_k400_1k_released=Run(
        'LVT lxvitv2_B16_16x16_k400', 32, .035, .01, 35, 1e-5, 4, (8, 8),
        CROSS, ('qk', True)),
    linear_ff_k400_21k_released=Run(
        'LVT lxvitv2_B16_16x16_k400_21k', 32, .035, .01, 40, 1e-5, 4, (8, 8),
        CROSS, ('qk', True)),
    linear_ff_released_k400=Run(
        'LVT lxvitv2_B16_16x16_k400_21k_cgate', 32, .035, .01, 40, 1e-5, 4,
        (8, 8), EIGHT, ('qkv', False)),
    linear_ff_k600_released=Run(
        'LVT lxvitv2_B16_16x16_k600_21k_cgate', 32, .035, .01, 40, 1e-5, 4,
        (8, 8), EIGHT, ('qkv', True)),
    xvit_ssv2_released=Run(
        'XViT xvit_B16_16x16', 64, .03, .003, 35, 1e-4, 2, (4, 16), None,
        None),
    xvit_k400_released=Run(
        'XViT xvit_B16_16x16_k400', 64, .03, .01, 30, 1e-5, 1, (8, 8), None,
        None),
    xvit_k600_released=Run(
        'XViT xvit_B16_16x16_k600', 64, .03, .01, 30, 1e-5, 1, (8, 8), None,
        None))


# Another dataset, tested in test_charades.py.
CHARADES = 'linear_ff_charades_released'


class ViViTRun(NamedTuple):
    """Run of ViViT with 64 clips per batch.

    ``source`` is None for unreleased runs of the paper.
    """
    source: str | None
    rate: float
    epochs: int
    stride: int
    short: int
    side: int
    # Magnitude of RandAugment; None means color jitter.
    rand_augment: int | None
    # Label smoothing, mixup, stochastic depth.
    regularization: tuple
    temporal_layers: int | None
    crops: int = 3


VIVIT_RUNS = dict(
    vivit_b16x2_joint_k400=ViViTRun(
        'ViViT K400 B M1', .1, 30, 2, 256, 224, None, (0, 0, 0), None),
    vivit_b16x2_fact_encoder_k400=ViViTRun(
        'ViViT K400 B FE', .05, 30, 2, 256, 224, None, (0, 0, 0), 4),
    vivit_l16x2_fact_encoder_k400_released=ViViTRun(
        'ViViT K400 L FE', .1, 30, 2, 256, 224, None, (0, 0, 0), 24),
    vivit_l16x2_fact_encoder_k600_released=ViViTRun(
        'ViViT K600 L FE', .05, 30, 2, 256, 224, None, (0, 0, 0), 24),
    vivit_l16x2_fact_encoder_ssv2_released=ViViTRun(
        'ViViT SS L FE', .4, 35, 1, 288, 256, 20, (.3, .3, .3), 4),
    vivit_l16x2_fact_encoder_epic_released=ViViTRun(
        'ViViT EK L FE', .5, 50, 1, 256, 224, 15, (.2, .1, .2), 4),
    vivit_b16x2_fact_attention_k400=ViViTRun(
        None, .1, 30, 2, 256, 224, None, (0, 0, 0), None),
    vivit_b16x2_fact_dot_k400=ViViTRun(
        None, .1, 30, 2, 256, 224, None, (0, 0, 0), None),
    vivit_l16x2_joint_k400=ViViTRun(
        None, .1, 30, 2, 256, 224, None, (0, 0, 0), None),
    vivit_l16x2_fact_encoder_k400=ViViTRun(
        None, .1, 30, 2, 256, 224, None, (0, 0, 0), 4),
    vivit_l16x2_fact_encoder_k600=ViViTRun(
        None, .05, 30, 2, 256, 224, None, (0, 0, 0), 4),
    vivit_l16x2_fact_encoder_mit=ViViTRun(
        None, .25, 10, 2, 256, 224, None, (0, 0, 0), 4))

# Released runs without a config, and the reason.
NO_CONFIG = {
    'LVT lvitv1': 'an earlier network, which the paper does not report',
    'LVT pvt': 'another network, which the paper does not report',
    'LVT vit_prune': 'another network, which the paper does not report',
    'LVT xvit':
        'xvit_ssv2_released with 32 clips per batch at the same rate: '
        '--cfg-options train_dataloader.batch_size=4 '
        'auto_scale_lr.base_batch_size=32',
    'ViViT MiT L': 'no config is released; ours has the values of Table 7',
}


# (transform, options) between decoding and packing, in order.
V0 = 'AutoAugment', dict(policy='v0', interpolation='random')
SSV2_TRAIN = [
    V0,
    ('RandomRescale', dict(scale_range=(256, 320))),
    ('RandomCrop', dict(size=224)),
    ('RandomErasing', dict(erase_prob=0.5)),
]
KINETICS_TRAIN = [
    ('Resize', dict(scale=(-1, 256))),
    V0,
    ('MultiScaleCrop', dict(
        input_size=224, scales=(1, .875, .75, .66), random_crop=False,
        max_wh_scale_gap=1, num_fixed_crops=13)),
    ('Resize', dict(scale=(224, 224), keep_ratio=False)),
    ('Flip', dict(flip_ratio=0.5)),
]
THREE_OF_224 = [
    ('Resize', dict(scale=(-1, 224))), ('ThreeCrop', dict(crop_size=224))]


def _steps(cfg, split):
    """Return the sampler, and the steps from decoding to FormatShape."""
    steps = [dict(step) for step in
             cfg[f'{split}_dataloader'].dataset.pipeline]
    kinds = [step['type'] for step in steps]
    assert kinds[0] == 'VideoReaderInit'
    assert kinds[2] == 'VideoReaderDecode'
    assert kinds[-2:] == ['FormatShape', 'PackActionInputs']
    return steps[1], [(step.pop('type'), step) for step in steps[3:-2]]


@pytest.mark.parametrize('name', RUNS)
def test_optimization_matches_the_release(name):
    cfg, run = load_config(name), RUNS[name]
    assert cfg.optim_wrapper == dict(
        type='OptimWrapper',
        optimizer=dict(
            type='SGD', lr=run.rate, momentum=0.9, nesterov=True,
            weight_decay=run.decay),
        paramwise_cfg=dict(custom_keys={
            f'cls_head.{name}.bias': dict(decay_mult=0.)
            for name in ('norm', 'fc_hidden', 'fc_cls')}))
    assert cfg.train_dataloader.drop_last
    for split in ('val', 'test'):
        assert 'drop_last' not in cfg[f'{split}_dataloader']
    schedule, = cfg.param_scheduler
    assert schedule.pop('start_factor') == pytest.approx(run.start / run.rate)
    assert schedule == dict(
        type='WarmupCosineLR', curve='line', warmup=5, begin=0,
        end=run.epochs, by_epoch=True, convert_to_iter_based=True)
    assert cfg.train_cfg.max_epochs == run.epochs
    # For 8 GPUs; --auto-scale-lr adapts the rate to other numbers.
    assert cfg.train_dataloader.batch_size * 8 == run.batch
    assert cfg.auto_scale_lr.base_batch_size == run.batch


@pytest.mark.parametrize('name', ['linear_ff_ssv2', 'xvit_k400_released'])
def test_only_biases_of_the_head_have_no_decay(name):
    """The released code selects biases of modules with "head" in the name."""
    cfg = load_config(name)
    cfg.model.backbone.update(num_layers=1, embed_dims=24, num_heads=2)
    cfg.model.cls_head.update(in_channels=24, hidden_dims=16)
    if cfg.model.cls_head.type == 'XViTHead':
        cfg.model.cls_head.num_heads = 2
    cfg.model.data_preprocessor = None
    init_default_scope('mmaction')
    model = MODELS.build(cfg.model)
    groups = build_optim_wrapper(
        model, cfg.optim_wrapper).optimizer.param_groups
    undecayed = {id(p) for group in groups for p in group['params']
                 if group['weight_decay'] == 0}
    assert {group['weight_decay'] for group in groups} == {
        0, RUNS[name].decay}
    assert {group['lr'] for group in groups} == {RUNS[name].rate}
    assert sum(len(group['params']) for group in groups) == len(
        list(model.parameters()))
    assert [n for n, p in model.named_parameters() if id(p) in undecayed] == [
        f'cls_head.{n}.bias' for n in ('norm', 'fc_hidden', 'fc_cls')]


@pytest.mark.parametrize('name', RUNS)
def test_network_matches_the_release(name):
    cfg, run = load_config(name), RUNS[name]
    kinetics = 'ssv2' not in name
    backbone, head = cfg.model.backbone, cfg.model.cls_head
    shift = backbone.temporal_shift
    assert (shift.mode, shift.divisor, shift.get('segment_frames', 16)) == (
        'tsm', *run.time)
    assert backbone.get('spatial_shift') == run.space
    fixation = backbone.get('fixation')
    assert run.gate == (fixation and (fixation.inputs, fixation.shared))
    assert backbone.get('drop_path_rate', 0) == 0
    assert head.dropout_ratio == 0.5
    assert head.num_classes == (
        600 if 'k600' in name else 400 if kinetics else 174)
    assert head.get('label_smooth_eps', 0) == (0.3 if kinetics else 0)
    prep = cfg.model.data_preprocessor
    assert prep.mean == prep.std == [127.5] * 3
    assert prep.get('blending') == (dict(
        type='MixupBlending', num_classes=head.num_classes, alpha=0.4)
        if kinetics else None)


@pytest.mark.parametrize('name', RUNS)
def test_clips_match_the_release(name):
    cfg, run = load_config(name), RUNS[name]
    kinetics = 'ssv2' not in name
    sampler = dict(type='SlowFastSampleFrames', clip_len=16,
                   frame_interval=16) if kinetics else dict(
                       type='SegmentSampleFrames', clip_len=16)
    assert _steps(cfg, 'train') == (
        sampler, KINETICS_TRAIN if kinetics else SSV2_TRAIN)
    assert _steps(cfg, 'test') == (
        dict(sampler, num_clips=run.clips, test_mode=True), THREE_OF_224)
    # The released code adds logits.
    assert cfg.model.cls_head.average_clips == 'score'


@pytest.mark.parametrize('name', VIVIT_RUNS)
def test_vivit_optimization_matches_the_release(name):
    cfg, run = load_config(name), VIVIT_RUNS[name]
    assert cfg.optim_wrapper == dict(
        type='OptimWrapper',
        optimizer=dict(
            type='SGD', lr=run.rate, momentum=0.9, weight_decay=0.),
        clip_grad=dict(max_norm=1.))
    warmup, cosine = cfg.param_scheduler
    assert (warmup.type, warmup.begin, warmup.end) == ('LinearLR', 0, 2.5)
    assert (cosine.type, cosine.begin, cosine.end, cosine.T_max,
            cosine.eta_min) == ('CosineAnnealingLR', 2.5, run.epochs,
                                run.epochs - 2.5, 0)
    assert cfg.train_cfg.max_epochs == run.epochs
    assert cfg.train_dataloader.batch_size * 8 == 64
    assert cfg.auto_scale_lr.base_batch_size == 64
    smoothing, mixup, depth = run.regularization
    head, blending = cfg.model.cls_head, cfg.model.data_preprocessor.get(
        'blending')
    assert head.get('label_smooth_eps', 0) == smoothing
    assert cfg.model.backbone.get('drop_path_rate', 0) == depth
    assert blending == (dict(
        type='MixupBlending', num_classes=head.num_classes, alpha=mixup)
        if mixup else None)
    assert cfg.model.backbone.get('num_temporal_layers') == \
        run.temporal_layers


@pytest.mark.parametrize('name', VIVIT_RUNS)
def test_vivit_clips_match_the_release(name):
    cfg, run = load_config(name), VIVIT_RUNS[name]
    sampler = dict(type='ScenicSampleFrames', clip_len=32,
                   frame_interval=run.stride)
    resize = 'Resize', dict(scale=(-1, run.short))
    assert _steps(cfg, 'train') == (sampler, [
        resize,
        ('ScaleJitter', dict(scale_range=(0.9, 1.33))),
        ('RandomCrop', dict(size=run.side)),
        ('Flip', dict(flip_ratio=0.5)),
        ('ScenicColorJitter', dict(prob=0.8, gray_prob=0.1))
        if run.rand_augment is None else
        ('ScenicRandAugment', dict(num_ops=2, magnitude=run.rand_augment)),
    ])
    got, steps = _steps(cfg, 'test')
    assert dict(got, num_clips=4, test_mode=True) == got
    assert (got['type'], got['clip_len'], got['frame_interval']) == (
        'ScenicSampleFrames', 32, run.stride)
    assert steps == [
        resize, ('UniformThreeCrop', dict(crop_size=run.side))]
    got, steps = _steps(cfg, 'val')
    assert {'num_clips': 1, **got} == dict(
        sampler, num_clips=1, test_mode=True)
    assert steps == [resize, ('CenterCrop', dict(crop_size=run.side))]
    prep = cfg.model.data_preprocessor
    assert prep.mean == prep.std == [127.5] * 3
    assert cfg.model.cls_head.average_clips == 'score'
    assert cfg.model.backbone.img_size == run.side


# Config, the pipeline in which it differs from the released one, and the step
# that it lacks.
RECOMMENDED = [
    ('vivit_l16x2_fact_encoder_ssv2', 'train', 'Flip'),
    ('vivit_l16x2_fact_encoder_epic', 'test', 'UniformThreeCrop')]


@pytest.mark.parametrize('name, split, lacks', RECOMMENDED)
def test_recommended_config_differs_only_as_documented(name, split, lacks):
    ours, released = load_config(name), load_config(f'{name}_released')
    for part in ('train', 'val', 'test'):
        same = _steps(ours, part) == _steps(released, part)
        assert same == (part != split)
    kinds = [kind for kind, _ in _steps(released, split)[1]]
    assert lacks in kinds
    assert lacks not in [kind for kind, _ in _steps(ours, split)[1]]
    for key in ('model', 'optim_wrapper', 'param_scheduler', 'train_cfg'):
        assert ours[key] == released[key]


def test_every_released_run_has_a_config_or_a_reason():
    runs = [run.source for run in (*RUNS.values(), *VIVIT_RUNS.values())
            if run.source]
    assert len(runs) == len(set(runs)) == 14 and not set(runs) & set(NO_CONFIG)
    released = {name for family in ('linear_ff', 'xvit', 'vivit')
                for name in list_models(f'{family}_*released*')}
    assert released - {CHARADES} <= {*RUNS, *VIVIT_RUNS}
    ours = {name for name, _, _ in RECOMMENDED}
    causal = {*list_models('vivit_*causal*')}
    assert {*list_models('vivit_[bl]*')} == {*VIVIT_RUNS} | ours | causal
    assert all(NO_CONFIG.values())
