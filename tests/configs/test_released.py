# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compare resolved configs with the authors' settings, value by value.

``recipes.yml`` of each family has the settings of the recipe tables;
``DETAILS`` has others. Both come from the released yamls, launch scripts and
data code, or from the papers. Known differences that neither a config nor a
README ("What differs") shows:

* All: start weights, which init_cfg or load_from sets; those of the linear
  video transformer (LVT) are unpublished.
* LVT, XViT: released validation has the random crop and flip of training (for
  XViT on Something-Something, every 5 epochs). Released videos are resampled
  to 30 frames/s (Kinetics: only with a list of rates) and resized to a height
  of 256 beforehand; ours are resized after reading. Frames are normalized as
  floats before resizing; ours as bytes after it. Random erasing redraws boxes
  that do not fit and fills with 127.5; ours clips them, and fills with 128.
  LVT's lvitv1, pvt and vit_prune have no config: the paper does not report
  these networks. LVT's xvit is xvit_ssv2_released with 32 clips per batch.
* ViViT: color jitter works on normalized floats; ours on bytes.
* LAPS: color jitter before rescale and crop (ours: after); the best epoch on
  the validation set (ours: the last); `v1` with 64 frames; TokShift at 384
  and TokShift-L on Kinetics (here with the sizes for UCF-101 and EGTEA Gaze+).
* DualFormer: apex O1; BatchNorm over parts of a GPU's batch.
* TeSTra: skips a last training window that ends with its video, and segments
  that begin too early.
"""
from fnmatch import fnmatch

import pytest
from mmaction.registry import MODELS
from mmengine.optim import build_optim_wrapper

from docs import recipes
from mmvidattn.apis import list_models, load_config

FOLDERS = [path.parent for path in sorted(
    recipes.ROOT.glob('configs/*/recipes.yml'))]
# Authors' values that differ from ours, with the configs: kind of the row in
# recipes.yml, column and value.
DIFFERENCES = {
    ('released', 'views', '10 x 3'): 'laps_*',
    ('released', 'views', '4 x 3 CenteredSampleFrames'):
        'dualformer_small_[dhu]* dualformer_tiny_ucf101',
    ('released', 'views', '4 x 3'): 'vivit_l16x2_fact_encoder_epic',
    ('released', 'views', '2 x 3'): 'xvit_ssv2',
    ('released', 'views', '1 x 3'): 'xvit_k400',
    ('released', 'warmup', '2.5 from 0'): 'vivit_*',
    ('released', 'decay', '1e-05'): 'linear_ff_k600',
    ('released', 'epochs', '40, cosine'): 'linear_ff_k600',
    ('released', 'rate', 'AdamW 0.0001 to 0.005, best of 20'):
        'vjepa2_?_ssv2 vjepa2_l_k400 vjepa2_?_ek100',
    ('released', 'rate', 'AdamW 0.0001 to 0.001, best of 3'):
        'vjepa2_l_diving48',
    ('released', 'decay', '0.01 to 0.8'): 'vjepa2_?_ssv2 vjepa2_l_k400',
    ('released', 'decay', '0.0001 to 0.1'): 'vjepa2_?_ek100',
    ('paper', 'warmup', '10 from 0'): 'testra_thumos14',
    ('paper', 'epochs', '25, cosine from 10'): 'testra_thumos14',
    ('paper', 'views', '4 x 1'): 'vivit_l16x2_fact_encoder_epic_released',
    ('paper', 'rate', 'SGD 0.1'): 'vivit_l16x2_fact_encoder_k600*',
    ('paper', 'rate', 'SGD 0.5'): 'vivit_l16x2_fact_encoder_ssv2*',
    ('paper', 'clip', '16 x 16'): 'linear_ff_paper_ssv2',
    ('paper', 'sides', '256-320, 224'): 'linear_ff_k[46]00',
    ('paper', 'clip', '8 x 8'): 'laps_visformer_k400',
    ('paper', 'clip', '16 x 8'): 'laps_visformer_l_k400',
    ('paper', 'clip', '32 x 8'): 'laps_visformer_[he]_k400',
    ('paper', 'rate', 'AdamW 0.001'): 'dualformer_base_k600',
    ('paper', 'batch', '8 x 8'):
        'dualformer_tiny_*[18] dualformer_small_*[1]',
    ('paper', 'decay', '0.02'): 'dualformer_tiny_*[18] dualformer_small_*[1]',
    ('paper', 'epochs', '16, cosine'): 'dualformer_small_diving48',
}


def matches(name, patterns):
    return any(fnmatch(name, pattern) for pattern in patterns.split())


@pytest.mark.parametrize('folder', FOLDERS, ids=lambda path: path.name)
def test_settings_are_the_authors_except_known_differences(folder):
    names, content = recipes.read_recipes(folder)
    found = set()
    for name in names:
        cfg, rows = load_config(name), [
            row for row in content['authors'] if fnmatch(name, row['config'])]
        assert rows or 'released' not in name
        ours = recipes.recipe(cfg, '')
        found |= {(row['of'].partition(',')[0], key, str(row[key]), name)
                  for row in rows for key in recipes.COLUMNS
                  if key != 'start' and recipes.is_different(row, ours, key)}
        # The table has the clips of training; those of the test are equal.
        samplers = [recipes._sampler(cfg[f'{split}_dataloader'].dataset.get(
            'pipeline', ())) for split in ('train', 'val', 'test')]
        for key in 'clip_len', 'frame_interval':
            assert len({sampler.get(key) for sampler in samplers}) == 1, name
    for *difference, name in found:
        assert matches(name, DIFFERENCES.get(tuple(difference), '')), (
            name, difference)
    for difference, patterns in DIFFERENCES.items():
        for pattern in patterns.split():
            assert not any(fnmatch(name, pattern) for name in names) or any(
                fnmatch(name, pattern) and difference == tuple(rest)
                for *rest, name in found), (pattern, difference)


def scaled(*numbers):
    return [round(255 * number, 3) for number in numbers]


EIGHT = dict(mode='eight', size=1)
CROSS = dict(mode='cross', size=4, divisor=8)
HALVES = dict(mode='tsm', divisor=8, segment_frames=8)
BACKBONE, HEAD = 'model.backbone', 'model.cls_head'
# Patterns of names (after '!', of exceptions), and values by the path of the
# option, None if it is absent. recipes.md has the augmentations.
DETAILS = [
    ('linear_ff_ssv2 linear_ff_*released* xvit_*_released', {
        'optim_wrapper.type': 'OptimWrapper',
        'optim_wrapper.optimizer.momentum': 0.9,
        'optim_wrapper.optimizer.nesterov': True,
        'train_dataloader.drop_last': True,
        'val_dataloader.drop_last': None,
        'test_dataloader.drop_last': None,
        'param_scheduler.0.curve': 'line',
        'param_scheduler.0.convert_to_iter_based': True,
        f'{BACKBONE}.drop_path_rate': None,
        f'{HEAD}.dropout_ratio': 0.5}),
    ('linear_ff_*released*', {
        'auto_scale_lr.base_batch_size': 32,
        'train_dataloader.batch_size': 4}),
    ('linear_ff_ssv2 xvit_ssv2_released', {
        f'{BACKBONE}.temporal_shift': dict(mode='tsm', divisor=4),
        f'{HEAD}.label_smooth_eps': None, f'{HEAD}.num_classes': 174}),
    ('linear_ff_*k400*released linear_ff_released_k400 xvit_k400_released', {
        f'{BACKBONE}.temporal_shift': HALVES,
        f'{HEAD}.label_smooth_eps': 0.3, f'{HEAD}.num_classes': 400}),
    ('linear_ff_k600_released xvit_k600_released', {
        f'{BACKBONE}.temporal_shift': HALVES,
        f'{HEAD}.label_smooth_eps': 0.3, f'{HEAD}.num_classes': 600}),
    ('linear_ff_ssv2 linear_ff_k600_released linear_ff_charades_released', {
        f'{BACKBONE}.spatial_shift': EIGHT,
        f'{BACKBONE}.fixation': dict(
            mode='cooperative', inputs='qkv', shared=True)}),
    ('linear_ff_released_k400', {
        f'{BACKBONE}.spatial_shift': EIGHT,
        f'{BACKBONE}.fixation.inputs': 'qkv',
        f'{BACKBONE}.fixation.shared': False}),
    ('linear_ff_k400_*_released', {
        f'{BACKBONE}.spatial_shift': CROSS,
        f'{BACKBONE}.fixation.inputs': 'qk',
        f'{BACKBONE}.fixation.shared': True}),
    ('xvit_*_released', {
        f'{BACKBONE}.spatial_shift': None, f'{BACKBONE}.fixation': None}),
    ('linear_ff_charades_released', {
        f'{BACKBONE}.temporal_shift': HALVES,
        f'{HEAD}.num_classes': 157, f'{HEAD}.label_smooth_eps': None,
        f'{HEAD}.loss_cls.type': 'BCELossWithLogits'}),
    # The paper's text, with differences that the README lists.
    # Half of the channels are not shifted.
    ('linear_ff_paper_*', {
        'optim_wrapper.optimizer.momentum': 0.9,
        'optim_wrapper.optimizer.nesterov': False,
        f'{BACKBONE}.num_frames': 16, f'{BACKBONE}.embed_dims': 512,
        f'{BACKBONE}.num_heads': 8, f'{BACKBONE}.num_layers': 12,
        f'{BACKBONE}.order': 'space_time', f'{BACKBONE}.patch_stride': 16,
        f'{BACKBONE}.shift_placement': 'both',
        f'{BACKBONE}.attention.kernel': 'relu',
        f'{HEAD}.dropout_ratio': 0.5}),
    ('linear_ff_paper_ssv2', {
        f'{BACKBONE}.spatial_shift': dict(mode='cross', size=1, alpha=0.5),
        f'{BACKBONE}.temporal_shift': dict(mode='window', size=4, alpha=0.5)}),
    ('linear_ff_paper_k[46]00', {
        f'{BACKBONE}.spatial_shift': dict(mode='cross', size=4, alpha=0.5),
        f'{BACKBONE}.temporal_shift': dict(mode='window', size=8, alpha=0.5)}),
    ('vivit_[bl]* !vivit_*causal*', {
        'auto_scale_lr.base_batch_size': 64,
        'train_dataloader.batch_size': 8,
        'optim_wrapper.optimizer.momentum': 0.9,
        'optim_wrapper.optimizer.nesterov': None,
        'optim_wrapper.clip_grad': dict(max_norm=1.),
        'param_scheduler.1.eta_min': 0}),
    ('vivit_[bl]* !vivit_*causal* !vivit_*ssv2* !vivit_*epic*', {
        'test_pipeline.3.scale': (-1, 256),
        'test_pipeline.4.type': 'UniformThreeCrop',
        f'{HEAD}.label_smooth_eps': None, f'{BACKBONE}.drop_path_rate': None}),
    ('vivit_*_ssv2_released', {
        'test_pipeline.4.type': 'UniformThreeCrop',
        f'{HEAD}.label_smooth_eps': 0.3, f'{BACKBONE}.drop_path_rate': 0.3}),
    ('vivit_*_epic_released', {
        'test_pipeline.4.type': 'UniformThreeCrop',
        f'{HEAD}.label_smooth_eps': 0.2, f'{BACKBONE}.drop_path_rate': 0.2}),
    ('vivit_l*_k[46]00_released', {f'{BACKBONE}.num_temporal_layers': 24}),
    ('vivit_*fact_encoder_* !vivit_*causal* !vivit_l*_k[46]00_released '
     '!vivit_tiny* !vivit_dinov2*', {f'{BACKBONE}.num_temporal_layers': 4}),
    ('laps_* !laps_tiny*', {
        'optim_wrapper.optimizer.momentum': 0.9,
        'optim_wrapper.clip_grad.max_norm': 1,
        'optim_wrapper.accumulative_counts': 10,
        'custom_hooks': [dict(type='PreciseBNHook', num_batches=200)],
        f'{HEAD}.label_smooth_eps': 0.1}),
    ('laps_* !laps_tiny* !laps_vit_* !laps_tokshift_*', {
        'model.data_preprocessor.mean': scaled(.486, .457, .407),
        'model.data_preprocessor.std': scaled(.229, .224, .225)}),
    ('laps_vit_k400 laps_tokshift_k400', {
        'model.data_preprocessor.mean': scaled(.5, .5, .5),
        'model.data_preprocessor.std': scaled(.5, .5, .5)}),
    ('dualformer_* !dualformer_*motion', {
        'auto_scale_lr.enable': False,
        'optim_wrapper.optimizer.betas': (.9, .999),
        'optim_wrapper.accumulative_counts': None,
        'param_scheduler.0.convert_to_iter_based': True,
        'param_scheduler.1.convert_to_iter_based': None,
        'param_scheduler.1.eta_min': 0,
        'val_pipeline.3.scale': (-1, 256),
        'test_pipeline.4.type': 'CenterCrop',
        f'{HEAD}.dropout_ratio': 0.5}),
    ('dualformer_*[18]', {
        'model.data_preprocessor.mean': [104, 117, 128],
        'model.data_preprocessor.std': [1, 1, 1]}),
    ('dualformer_*tiny*_k400', {f'{BACKBONE}.drop_path_rate': 0.1}),
    ('dualformer_*small*_k400 dualformer_tiny*[18] dualformer_*_diving48', {
        f'{BACKBONE}.drop_path_rate': 0.2}),
    ('dualformer_*base* dualformer_small_[hu]*', {
        f'{BACKBONE}.drop_path_rate': 0.3}),
    ('dualformer_paper_*', {
        f'{BACKBONE}.pooling': 'factorized',
        f'{BACKBONE}.patch_merging': 'linear'}),
    ('testra_*thumos14 lstr_* testra_*ek100*', {
        'optim_wrapper.clip_grad': None,
        'param_scheduler.type': 'WarmupCosineLR',
        'train_dataloader.dataset.feature_rate': 4}),
    ('testra_*thumos14 lstr_*', {f'{BACKBONE}.drop_rate': 0.2}),
    ('testra_thumos14', {f'{BACKBONE}.decay': 0.97}),
    ('testra_box_thumos14 testra_lite_thumos14 testra_box_ek100 lstr_*', {
        f'{BACKBONE}.decay': 1}),
    ('testra_ek100*', {f'{BACKBONE}.decay': 0.9}),
    ('testra_*', {f'{BACKBONE}.fusion': 'compressed'}),
    ('lstr_*', {f'{BACKBONE}.fusion': 'none',
                f'{BACKBONE}.long_memory_pos_embed': True}),
    ('testra_*ek100* !testra_rgb* !testra_vjepa*', {
        f'{BACKBONE}.drop_rate': 0.1, f'{HEAD}.dropout_ratio': 0.8,
        f'{BACKBONE}.in_channels': dict(rgb=1024, flow=1024)}),
    ('testra_ek100_released', {
        'train_pipeline.0': dict(type='MixClip', prob=.5, mode='single')}),
    ('miniroad_thumos14', {
        f'{BACKBONE}.in_channels': dict(rgb=2048, flow=1024)}),
    ('miniroad_tvseries', {
        f'{BACKBONE}.in_channels': dict(rgb=2048, flow=2048)}),
    ('miniroad_* !miniroad_tiny*', {
        f'{BACKBONE}.embed_dims': 1024, f'{BACKBONE}.proj_dims': 2048,
        f'{BACKBONE}.num_layers': 1, f'{BACKBONE}.work_memory_length': 128,
        f'{BACKBONE}.drop_rate': 0.2, f'{HEAD}.num_loss_steps': 1,
        f'{HEAD}.loss_cls': dict(
            type='MultiClassCrossEntropyLoss', ignore_index=None,
            normalize_targets=True),
        'train_dataloader.sampler.stride': 4,
        'train_dataloader.dataset.pad_start': True}),
]


def value_of(cfg, path):
    for key in path.split('.'):
        cfg = cfg[int(key)] if key.isdigit() else cfg.get(key)
        if cfg is None:
            return None
    return cfg


@pytest.mark.parametrize('patterns, values', DETAILS)
def test_details_are_the_authors(patterns, values):
    words = patterns.split()
    left_out = ' '.join(word[1:] for word in words if word[0] == '!')
    for pattern in (word for word in words if word[0] != '!'):
        names = [name for name in list_models(pattern)
                 if not matches(name, left_out) and 'tiny_videos' not in name
                 and 'synthetic' not in name]
        assert names, pattern
        for name in names:
            cfg = load_config(name)
            got = {path: value_of(cfg, path) for path in values}
            assert got == values, name


# The released code of linear_ff selects biases of modules with "head" in the
# name. Factors of the learning rate and of the decay by prefix.
HEAD_BIASES = {f'cls_head.{name}.bias': (1, 0)
               for name in ('norm', 'fc_hidden', 'fc_cls')} | {'': (1, 1)}
DUALFORMER = {'backbone.pegs': (1, 0), 'backbone': (.1, 1), '': (1, 1)}


@pytest.mark.parametrize('name, factors', [
    ('linear_ff_ssv2', HEAD_BIASES), ('xvit_k400_released', HEAD_BIASES),
    ('dualformer_tiny_k400', DUALFORMER), ('dualformer_base_k600', DUALFORMER),
    ('dualformer_tiny_tl_k400', DUALFORMER)])
def test_groups_of_parameters_match_the_release(name, factors, narrow):
    cfg = narrow(name)
    cfg.model.data_preprocessor = None
    model = MODELS.build(cfg.model)
    optimizer = cfg.optim_wrapper.optimizer
    got = {p: (group['lr'], group['weight_decay'])
           for group in build_optim_wrapper(
               model, cfg.optim_wrapper).param_groups
           for p in group['params']}
    for key, p in model.named_parameters():
        rate, decay = next(value for prefix, value in factors.items()
                           if key.startswith(prefix))
        assert got[p] == pytest.approx(
            (rate * optimizer.lr, decay * optimizer.weight_decay)), key
