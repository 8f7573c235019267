# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Probe of V-JEPA 2 ViT-L on Kinetics-400, tested at 8 x 3 views whose eight
# clips are pooled together. The authors give no accuracy with their code.
_base_ = 'vjepa2_l_ssv2.py'

data_root = 'data/kinetics400'
num_classes = 400

model = dict(pool_clips=8, cls_head=dict(num_classes=num_classes))

_base_.train_pipeline[1].num_clips = 8
_base_.val_pipeline[1].num_clips = 8
_base_.test_pipeline[1].num_clips = 8
dataset = dict(
    data_root=data_root,
    metainfo=dict(classes=f'{data_root}/label_map.txt'),
    num_classes=num_classes)
train_dataloader = dict(dataset=dict(
    ann_file='kinetics400_train_list_videos.txt',
    data_prefix=dict(video='videos_train'),
    pipeline=_base_.train_pipeline, **dataset))
val_dataloader = dict(dataset=dict(
    ann_file='kinetics400_val_list_videos.txt',
    data_prefix=dict(video='videos_val'),
    pipeline=_base_.val_pipeline, **dataset))
test_dataloader = dict(dataset=dict(
    ann_file='kinetics400_val_list_videos.txt',
    data_prefix=dict(video='videos_val'),
    pipeline=_base_.test_pipeline, **dataset))
