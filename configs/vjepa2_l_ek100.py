# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Action anticipation on EPIC-Kitchens-100: probe of V-JEPA 2 ViT-L that reads
# the features of four seconds and the predicted features of the moment one
# second later. The authors: recall@5 of actions 32.7, for clips that end one
# second before the end of an action instead of its start; for that score,
#     --cfg-options test_dataloader.dataset.pipeline.1.point="(1, 1)"
_base_ = [
    '_base_/models/vjepa2.py', '_base_/schedules/adamw_20e_probe.py',
    '_base_/default_runtime.py'
]

# The lists are RULSTM's; the videos are in the folders of the official
# download script: P01/videos/P01_01.MP4. A sample has three labels: the noun,
# 300 + the verb, and 397 + the action.
data_root = 'data/ek100'
num_nouns, num_verbs, num_actions = 300, 97, 3806
num_classes = 4203
num_frames = 32
img_size = 256
parts = dict(noun=num_nouns, verb=num_verbs, action=num_actions)

# Start weights of encoder and predictor are in one file of the authors, or of
# transformers:
#     model.backbone.init_cfg = dict(
#         type='Pretrained', source='vjepa2', checkpoint=FILE)
#     model.neck.init_cfg = dict(
#         type='Pretrained', source='vjepa2_predictor', checkpoint=FILE)
model = dict(
    pool_clips=1,
    backbone=dict(num_frames=num_frames),
    neck=dict(type='VJEPA2Predictor', in_channels=1024),
    cls_head=dict(
        num_classes=num_classes,
        parts=parts,
        average_clips='score',
        # The focal loss, summed over samples and classes.
        loss_cls=dict(
            type='AsymmetricLoss',
            gamma_neg=2,
            gamma_pos=2,
            margin=0,
            alpha=0.25,
            reduction='sum')))

train_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(
        type='AnticipationSampleFrames',
        clip_len=num_frames,
        seconds=(0.25, 1.75),
        point=(0.75, 1)),
    dict(type='DecordDecode'),
    dict(
        type='RandAugment',
        num_ops=4,
        magnitude=7,
        magnitude_std=0.5,
        prob=0.5,
        interpolation='bicubic'),
    dict(
        type='RandomResizedCrop',
        area_range=(0.08, 1.0),
        aspect_ratio_range=(3 / 4, 4 / 3)),
    dict(type='Resize', scale=(img_size, img_size), keep_ratio=False),
    dict(type='Flip', flip_ratio=0.5),
    dict(type='RandomErasing', erase_prob=0.25, mode='rand'),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(
        type='PackActionInputs',
        meta_keys=('img_shape', 'num_clips', 'clip_len', 'seconds_ahead'))
]
test_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(type='AnticipationSampleFrames', clip_len=num_frames),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, 292)),
    dict(type='CenterCrop', crop_size=img_size),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]

dataset = dict(
    type='VideoSegmentDataset',
    data_root=data_root,
    data_prefix=dict(video=''),
    filename_tmpl='{0:.3}/videos/{0}.MP4',
    multi_class=True,
    num_classes=num_classes,
    num_nouns=num_nouns,
    num_verbs=num_verbs)
train_dataloader = dict(
    batch_size=2,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(
        ann_file='training.csv', pipeline=train_pipeline, **dataset))
val_dataloader = dict(
    batch_size=2,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        ann_file='validation.csv',
        pipeline=test_pipeline,
        test_mode=True,
        **dataset))
test_dataloader = val_dataloader

val_evaluator = dict(
    type='MeanTopKRecall',
    parts=parts,
    subsets=dict(
        unseen=f'{data_root}/validation_unseen_participants_ids.csv',
        tail_verb=f'{data_root}/validation_tail_verbs_ids.csv',
        tail_noun=f'{data_root}/validation_tail_nouns_ids.csv',
        tail_action=f'{data_root}/validation_tail_actions_ids.csv'))
test_evaluator = val_evaluator

# The authors train 20 probes, with rates from 1e-4 to 5e-3 and weight decays
# from 1e-4 to 0.1.
optim_wrapper = dict(optimizer=dict(lr=1e-3, weight_decay=1e-2))
auto_scale_lr = dict(base_batch_size=128)
