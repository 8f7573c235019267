# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Fine-tuning of VideoMAE ViT-B on Something-Something v2, with frames from the
# whole video and without flips. The authors, after 2400 epochs of
# pre-training: top-1 70.8 at 2 x 3 views.
_base_ = 'vivit_videomae_b_k400.py'

data_root = 'data/sthv2'
num_classes = 174
num_frames = 16
img_size = 224

model = dict(
    cls_head=dict(num_classes=num_classes),
    data_preprocessor=dict(
        blending=dict(
            augments=[
                dict(
                    type='MixupBlending', alpha=0.8, num_classes=num_classes),
                dict(
                    type='CutmixBlending', alpha=1.0,
                    num_classes=num_classes)
            ])))

train_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(type='SegmentSampleFrames', clip_len=num_frames),
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
    dict(type='RandomErasing', erase_prob=0.25, mode='rand'),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
_base_.val_pipeline[1] = dict(
    type='SegmentSampleFrames', clip_len=num_frames, test_mode=True)
_base_.test_pipeline[1] = dict(
    type='SegmentSampleFrames',
    clip_len=num_frames,
    num_clips=2,
    test_mode=True)
dataset = dict(
    data_root=data_root,
    data_prefix=dict(video='videos'),
    metainfo=dict(classes=f'{data_root}/label_map.txt'),
    num_classes=num_classes)
train_dataloader = dict(dataset=dict(
    ann_file='sthv2_train_list_videos.txt', pipeline=train_pipeline,
    **dataset))
val_dataloader = dict(dataset=dict(
    ann_file='sthv2_val_list_videos.txt', pipeline=_base_.val_pipeline,
    **dataset))
test_dataloader = dict(dataset=dict(
    ann_file='sthv2_val_list_videos.txt', pipeline=_base_.test_pipeline,
    **dataset))

_base_.param_scheduler[1].T_max = 25
_base_.param_scheduler[1].end = 30
train_cfg = dict(max_epochs=30)
