# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Model 2 on top of a frozen DINOv2-B/14, for 16 frames, on UCF-101. Only the
# temporal encoder and the head are trained. This recipe is not from a paper,
# and we have not trained it. Set FILE to the published weights (see
# start_weights.md):
#     model.backbone.init_cfg = dict(
#         type='Pretrained', checkpoint=FILE, source='vivit_image')
_base_ = [
    '_base_/models/vivit_b16x2.py', '_base_/datasets/kinetics400.py',
    '_base_/default_runtime.py'
]

# UCF-101, split 1, in the folders that mmaction2's tools/data/ucf101 makes.
data_root = 'data/ucf101'
num_classes = 101
num_frames = 16
img_size = 224

model = dict(
    type='FineTunedRecognizer3D',
    freeze='spatial',
    backbone=dict(
        num_frames=num_frames,
        patch_size=14,
        tubelet_frames=1,
        model='fact_encoder',
        num_temporal_layers=4,
        gelu_approximate='none',
        norm_eps=1e-6),
    cls_head=dict(num_classes=num_classes),
    data_preprocessor=dict(
        mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375]))

# Clips of 16 frames, spread over the whole video.
train_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(type='UniformSample', clip_len=num_frames),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, 256)),
    dict(type='RandomResizedCrop', area_range=(0.5, 1.0)),
    dict(type='Resize', scale=(img_size, img_size), keep_ratio=False),
    dict(type='Flip', flip_ratio=0.5),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
val_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(type='UniformSample', clip_len=num_frames, test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, img_size)),
    dict(type='CenterCrop', crop_size=img_size),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
test_pipeline = [
    dict(type='DecordInit', io_backend='disk'),
    dict(
        type='UniformSample',
        clip_len=num_frames,
        num_clips=2,
        test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, img_size)),
    dict(type='ThreeCrop', crop_size=img_size),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]

dataset = dict(
    data_root=data_root,
    data_prefix=dict(video='videos'),
    metainfo=dict(classes=f'{data_root}/label_map.txt'),
    num_classes=num_classes)
train_dataloader = dict(
    batch_size=32,
    dataset=dict(
        ann_file='ucf101_train_split_1_videos.txt',
        pipeline=train_pipeline,
        **dataset))
val_dataloader = dict(
    batch_size=32,
    dataset=dict(
        ann_file='ucf101_val_split_1_videos.txt',
        pipeline=val_pipeline,
        **dataset))
test_dataloader = dict(
    batch_size=8,
    dataset=dict(
        ann_file='ucf101_val_split_1_videos.txt',
        pipeline=test_pipeline,
        **dataset))

optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=3e-4, weight_decay=0.05),
    clip_grad=dict(max_norm=1.0))
param_scheduler = [dict(
    type='WarmupCosineLR', curve='line', start_factor=0.01, warmup=2, end=20,
    convert_to_iter_based=True)]
train_cfg = dict(by_epoch=True, max_epochs=20, val_interval=2)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
auto_scale_lr = dict(enable=False, base_batch_size=32)
