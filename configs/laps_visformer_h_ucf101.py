# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS (H) fine-tuned on UCF-101, split 1: 32 x 320 x 320. Paper, Table 5:
# top-1 96.85. Set load_from, or init_cfg of the backbone, to a checkpoint of
# laps_visformer_h_k400.py.
_base_ = 'laps_visformer_h_k400.py'

data_root = 'data/ucf101'
num_classes = 101
dataset = dict(
    data_root=data_root,
    data_prefix=dict(video='videos'),
    metainfo=dict(classes=f'{data_root}/label_map.txt'),
    num_classes=num_classes)
train_dataloader = dict(
    dataset=dict(ann_file='ucf101_train_split_1_videos.txt', **dataset))
val_dataloader = dict(
    dataset=dict(ann_file='ucf101_val_split_1_videos.txt', **dataset))
test_dataloader = dict(
    dataset=dict(ann_file='ucf101_val_split_1_videos.txt', **dataset))

model = dict(cls_head=dict(num_classes=num_classes))
