# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# ViViT-L/16x2, Model 2, on EPIC-Kitchens-100, from a Kinetics or ImageNet
# model. The paper, Table 5d: top-1 of actions 44.0, verbs 66.4, nouns
# 56.8; the released model: actions 43.6 at 4 x 1 views.
_base_ = 'vivit_l16x2_fact_encoder_k400.py'

# The official lists (epic-kitchens-100-annotations), in the folders of the
# official download script: P01/videos/P01_01.MP4. A sample has two labels, the
# noun's number and 300 + the verb's number.
data_root = 'data/epic_kitchens100'
num_nouns, num_verbs = 300, 97
num_classes = 397

model = dict(
    backbone=dict(drop_path_rate=0.2),
    cls_head=dict(
        type='VerbNounHead',
        num_classes=num_classes,
        num_nouns=num_nouns,
        num_verbs=num_verbs,
        label_smooth_eps=0.2),
    data_preprocessor=dict(
        blending=dict(
            type='MixupBlending', num_classes=num_classes, alpha=0.1)))

# Clips as in scenic's ViViT: 32 consecutive frames of each segment, tested
# with one crop.
train_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(type='ScenicSampleFrames', clip_len=32, frame_interval=1),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, 256)),
    dict(type='ScaleJitter', scale_range=(0.9, 1.33)),
    dict(type='RandomCrop', size=224),
    dict(type='Flip', flip_ratio=0.5),
    dict(type='ScenicRandAugment', num_ops=2, magnitude=15),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
_base_.val_pipeline[1].frame_interval = 1
_base_.test_pipeline[1].frame_interval = 1
_base_.test_pipeline[4].type = 'CenterCrop'

dataset = dict(
    type='VideoSegmentDataset',
    data_root=data_root,
    data_prefix=dict(video=''),
    filename_tmpl='{0:.3}/videos/{0}.MP4',
    metainfo=dict(classes=f'{data_root}/label_map.txt'),
    multi_class=True,
    num_classes=num_classes,
    num_nouns=num_nouns)
train_dataloader = dict(
    dataset=dict(
        ann_file='EPIC_100_train.csv', pipeline=train_pipeline, **dataset))
val_dataloader = dict(
    dataset=dict(
        ann_file='EPIC_100_validation.csv',
        pipeline=_base_.val_pipeline,
        **dataset))
test_dataloader = dict(
    dataset=dict(
        ann_file='EPIC_100_validation.csv',
        pipeline=_base_.test_pipeline,
        **dataset))

val_evaluator = dict(
    _delete_=True, type='VerbNounAccuracy', num_nouns=num_nouns)
test_evaluator = val_evaluator

optim_wrapper = dict(optimizer=dict(lr=0.5))
_base_.param_scheduler[1].T_max = 47.5
_base_.param_scheduler[1].end = 50
train_cfg = dict(max_epochs=50)
