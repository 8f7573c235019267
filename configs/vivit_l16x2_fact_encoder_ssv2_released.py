# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Released recipe of ViViT-L/16x2, Model 2, on Something-Something v2, from a
# Kinetics or ImageNet model. It flips clips at random (the paper's Table 7),
# although many classes name a direction.
_base_ = 'vivit_l16x2_fact_encoder_k400.py'

# In the folders that mmaction2's tools/data/sthv2 makes.
data_root = 'data/sthv2'
num_classes = 174

# Clips as in scenic's ViViT: 32 consecutive frames, 256 x 256.
num_frames = 32
img_size = 256

model = dict(
    backbone=dict(img_size=img_size, drop_path_rate=0.3),
    cls_head=dict(num_classes=num_classes, label_smooth_eps=0.3),
    data_preprocessor=dict(
        blending=dict(
            type='MixupBlending', num_classes=num_classes, alpha=0.3)))

train_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(type='ScenicSampleFrames', clip_len=num_frames, frame_interval=1),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, 288)),
    dict(type='ScaleJitter', scale_range=(0.9, 1.33)),
    dict(type='RandomCrop', size=img_size),
    dict(type='Flip', flip_ratio=0.5),
    dict(type='ScenicRandAugment', num_ops=2, magnitude=20),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
val_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(
        type='ScenicSampleFrames',
        clip_len=num_frames,
        frame_interval=1,
        test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, 288)),
    dict(type='CenterCrop', crop_size=img_size),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
test_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(
        type='ScenicSampleFrames',
        clip_len=num_frames,
        frame_interval=1,
        num_clips=4,
        test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, 288)),
    dict(type='UniformThreeCrop', crop_size=img_size),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]

dataset = dict(
    data_root=data_root,
    data_prefix=dict(video='videos'),
    metainfo=dict(classes=f'{data_root}/label_map.txt'),
    num_classes=num_classes)
train_dataloader = dict(
    dataset=dict(
        ann_file='sthv2_train_list_videos.txt',
        pipeline=train_pipeline,
        **dataset))
val_dataloader = dict(
    batch_size=4,
    dataset=dict(
        ann_file='sthv2_val_list_videos.txt',
        pipeline=val_pipeline,
        **dataset))
test_dataloader = dict(
    dataset=dict(
        ann_file='sthv2_val_list_videos.txt',
        pipeline=test_pipeline,
        **dataset))

optim_wrapper = dict(optimizer=dict(lr=0.4))
_base_.param_scheduler[1].T_max = 32.5
_base_.param_scheduler[1].end = 35
train_cfg = dict(max_epochs=35)
