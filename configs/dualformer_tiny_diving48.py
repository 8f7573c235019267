# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# DualFormer-T on Diving-48, from a Kinetics-400 checkpoint: load_from. The
# paper, Table 2: top-1 75.9 at 4 x 1 views, 28 G multiply-accumulates per view
# (75.4 from an ImageNet-1k image model). The clips have 16 frames but the
# kernels are those for 32, as in the checkpoint, which gives the paper's cost;
# num_frames=16 converts them.
_base_ = 'dualformer_tiny_ucf101.py'

# Diving-48 V2, in the folders that mmaction2's tools/data/diving48 makes.
data_root = 'data/diving48'
num_classes = 48
dataset = dict(
    data_root=data_root,
    metainfo=dict(classes=f'{data_root}/label_map.txt'),
    num_classes=num_classes)
train_dataloader = dict(
    dataset=dict(ann_file='diving48_train_list_videos.txt', **dataset))
val_dataloader = dict(
    dataset=dict(ann_file='diving48_val_list_videos.txt', **dataset))
test_dataloader = val_dataloader

model = dict(cls_head=dict(num_classes=num_classes))
