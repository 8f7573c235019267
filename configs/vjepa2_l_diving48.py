# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Probe of V-JEPA 2 ViT-L on Diving-48, which reads the tokens of four blocks.
# The authors: top-1 89.0 at 4 x 3 views of 32 frames.
_base_ = 'vjepa2_l_ssv2.py'

data_root = 'data/diving48'
num_classes = 48
num_frames = 32

model = dict(
    pool_clips=4,
    backbone=dict(num_frames=num_frames, out_layers=(17, 19, 21, 23)),
    cls_head=dict(num_classes=num_classes))

_base_.train_pipeline[1].clip_len = num_frames
_base_.train_pipeline[1].frame_interval = 2
_base_.train_pipeline[1].num_clips = 4
_base_.val_pipeline[1].clip_len = num_frames
_base_.val_pipeline[1].frame_interval = 2
_base_.val_pipeline[1].num_clips = 4
_base_.test_pipeline[1].clip_len = num_frames
_base_.test_pipeline[1].frame_interval = 2
_base_.test_pipeline[1].num_clips = 4
dataset = dict(
    data_root=data_root,
    metainfo=dict(classes=f'{data_root}/label_map.txt'),
    num_classes=num_classes)
train_dataloader = dict(batch_size=2, dataset=dict(
    ann_file='diving48_train_list_videos.txt',
    pipeline=_base_.train_pipeline, **dataset))
val_dataloader = dict(batch_size=2, dataset=dict(
    ann_file='diving48_val_list_videos.txt',
    pipeline=_base_.val_pipeline, **dataset))
test_dataloader = dict(dataset=dict(
    ann_file='diving48_val_list_videos.txt',
    pipeline=_base_.test_pipeline, **dataset))

# The authors train three probes, of rates 1e-4, 3e-4 and 1e-3.
optim_wrapper = dict(optimizer=dict(lr=3e-4, weight_decay=0.8))
param_scheduler = [dict(
    type='CosineAnnealingLR', T_max=100, eta_min=0, by_epoch=True, begin=0,
    end=100, convert_to_iter_based=True)]
train_cfg = dict(max_epochs=100, val_interval=10)
auto_scale_lr = dict(base_batch_size=128)
