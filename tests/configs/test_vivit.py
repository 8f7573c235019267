# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The recipes of ViViT: the released ones, and what every set needs."""
import pytest
import torch
from mmaction.registry import DATASETS, METRICS, MODELS
from mmengine.dataset import pseudo_collate
from mmengine.optim.scheduler import CosineAnnealingLR, LinearLR

from mmvidattn.apis import list_models, load_config

# Learning rate, epochs, classes.
RECIPES = dict(
    b16x2_joint_k400=(0.1, 30, 400),
    b16x2_fact_encoder_k400=(0.05, 30, 400),
    b16x2_fact_attention_k400=(0.1, 30, 400),
    b16x2_fact_dot_k400=(0.1, 30, 400),
    l16x2_joint_k400=(0.1, 30, 400),
    l16x2_fact_encoder_k400=(0.1, 30, 400),
    l16x2_fact_encoder_k600=(0.05, 30, 600),
    l16x2_fact_encoder_ssv2=(0.4, 35, 174),
    l16x2_fact_encoder_epic=(0.5, 50, 397),
    l16x2_fact_encoder_mit=(0.25, 10, 339),
    l16x2_fact_encoder_k400_released=(0.1, 30, 400),
    l16x2_fact_encoder_k600_released=(0.05, 30, 600),
    l16x2_fact_encoder_ssv2_released=(0.4, 35, 174),
    l16x2_fact_encoder_epic_released=(0.5, 50, 397))


def test_every_recipe_is_here():
    assert {f'vivit_{name}' for name in RECIPES} == set(
        list_models('vivit_[bl]*'))


@pytest.mark.parametrize('name', RECIPES)
def test_is_trained_as_released(name):
    cfg = load_config(f'vivit_{name}')
    rate, epochs, num_classes = RECIPES[name]
    assert cfg.optim_wrapper.optimizer == dict(
        type='SGD', lr=rate, momentum=0.9, weight_decay=0.)
    assert cfg.optim_wrapper.clip_grad.max_norm == 1
    # On 8 GPUs.
    assert 8 * cfg.train_dataloader.batch_size == \
        cfg.auto_scale_lr.base_batch_size == 64
    warmup, cosine = cfg.param_scheduler
    assert warmup.end == cosine.begin == 2.5
    assert cosine.end == cosine.T_max + 2.5 == epochs == \
        cfg.train_cfg.max_epochs
    classes = {cfg.model.cls_head.num_classes}
    for split in ('train', 'val', 'test'):
        dataset = cfg[f'{split}_dataloader'].dataset
        classes.add(dataset.num_classes)
        assert dataset.data_root == cfg.data_root
        assert dataset.metainfo.classes.startswith(cfg.data_root)
        assert ('train' if split == 'train' else 'val') in dataset.ann_file
    blending = cfg.model.data_preprocessor.get('blending')
    if blending is not None:
        classes.add(blending.num_classes)
    assert classes == {num_classes}
    assert cfg.model.cls_head.average_clips == 'score'


# Stochastic depth, smoothing of labels, mixup.
REGULARISED = dict(ssv2=(0.3, 0.3, 0.3), epic=(0.2, 0.2, 0.1))


def _data_set(name):
    return name.removesuffix('_released').split('_')[-1]


@pytest.mark.parametrize('name', RECIPES)
def test_is_regularised_as_released(name):
    cfg = load_config(f'vivit_{name}')
    blending = cfg.model.data_preprocessor.get('blending')
    assert REGULARISED.get(_data_set(name), (0., 0., None)) == (
        cfg.model.backbone.get('drop_path_rate', 0.),
        cfg.model.cls_head.get('label_smooth_eps', 0.),
        blending and blending.alpha)
    kinds = [step.type for step in cfg.train_pipeline]
    strong = 'ScenicRandAugment' in kinds
    assert strong == (_data_set(name) in REGULARISED)
    assert ('ScenicColorJitter' in kinds) != strong
    assert ('Flip' in kinds) == (not name.endswith('ssv2'))


@pytest.mark.parametrize('name', RECIPES)
def test_clips_are_those_of_the_recipe(name):
    cfg = load_config(f'vivit_{name}')
    set_name = _data_set(name)
    interval = 1 if set_name in ('ssv2', 'epic') else 2
    short, side = (288, 256) if set_name == 'ssv2' else (256, 224)
    crops = 1 if name.endswith('epic') else 3
    backbone = cfg.model.backbone
    assert (backbone.num_frames, backbone.img_size) == (32, side)
    assert backbone.patch_size == 16 and backbone.tubelet_frames == 2
    assert cfg.model.data_preprocessor.mean == [127.5] * 3
    assert cfg.model.data_preprocessor.std == [127.5] * 3
    for split, clips in (('train', 1), ('val', 1), ('test', 4)):
        steps = {step.type: step
                 for step in cfg[f'{split}_dataloader'].dataset.pipeline}
        sample = steps['ScenicSampleFrames']
        assert (sample.clip_len, sample.frame_interval,
                sample.get('num_clips', 1),
                sample.get('test_mode', False)) == (
                    32, interval, clips, split != 'train')
    assert cfg.train_pipeline[3:6] == [
        dict(type='Resize', scale=(-1, short)),
        dict(type='ScaleJitter', scale_range=(0.9, 1.33)),
        dict(type='RandomCrop', size=side)]
    assert cfg.val_pipeline[3:5] == [
        dict(type='Resize', scale=(-1, short)),
        dict(type='CenterCrop', crop_size=side)]
    assert cfg.test_pipeline[3:5] == ([
        dict(type='Resize', scale=(-1, short)),
        dict(type='UniformThreeCrop', crop_size=side)
    ] if crops == 3 else cfg.val_pipeline[3:5])


def test_schedule_of_parts_of_epochs_runs_by_iterations():
    cfg = load_config('vivit_b16x2_joint_k400')
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    built = []
    for options in cfg.param_scheduler:
        options = dict(options)
        kind = dict(LinearLR=LinearLR,
                    CosineAnnealingLR=CosineAnnealingLR)[options.pop('type')]
        del options['convert_to_iter_based']
        built.append(
            kind.build_iter_from_epoch(
                optimizer, **options, epoch_length=11))
    rates = []
    for _ in range(30 * 11):
        rates.append(optimizer.param_groups[0]['lr'])
        optimizer.step()
        for scheduler in built:
            scheduler.step()
    # Two epochs and a half are 27 steps.
    assert rates[0] == pytest.approx(1e-4)
    assert max(rates) == pytest.approx(0.1)
    assert rates.index(max(rates)) in (26, 27)
    assert rates[-1] < 1e-4


def test_a_label_of_epic_kitchens_is_a_noun_and_a_verb(narrow, motion_dir):
    cfg = narrow('vivit_l16x2_fact_encoder_epic')
    video = (motion_dir / 'val.txt').read_text().split()[0]
    path = motion_dir / 'epic.csv'
    path.write_text(
        'narration_id,video_id,start_timestamp,stop_timestamp,start_frame,'
        'stop_frame,verb_class,noun_class\n'
        f'a_0,{video},00:00:00.00,00:00:00.50,1,6,96,299\n'
        f'a_1,{video},00:00:00.50,00:00:01.00,6,11,0,0\n')
    cfg.train_dataloader.dataset.update(
        ann_file=path.name, filename_tmpl='{}')
    cfg.model.data_preprocessor.blending = None
    dataset = DATASETS.build(cfg.train_dataloader.dataset)
    samples = [dataset[0], dataset[1]]
    assert [s['data_samples'].gt_label.nonzero().flatten().tolist()
            for s in samples] == [[299, 396], [0, 300]]
    model = MODELS.build(cfg.model)
    model.init_weights()
    batch = model.data_preprocessor(pseudo_collate(samples), training=True)
    losses = model(**batch, mode='loss')
    assert {'loss_noun', 'loss_verb'} <= losses.keys()
    assert losses['loss_noun'].item() == pytest.approx(
        torch.tensor(300.).log().item() / 2)
    metric = METRICS.build(cfg.test_evaluator)
    metric.process(None, [
        dict(pred_score=s['data_samples'].gt_label,
             gt_label=s['data_samples'].gt_label) for s in samples])
    assert metric.evaluate(2)['acc/action'] == 1
