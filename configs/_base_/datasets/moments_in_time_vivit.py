# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Moments in Time, in the folders that mmaction2's tools/data/mit makes, as
# ViViT reads Kinetics. Version 1; version 2 has 305 classes.
_base_ = 'kinetics400_vivit.py'

data_root = 'data/mit'
video_dir_train = 'videos/training'
video_dir_val = 'videos/validation'
ann_file_train = 'mit_train_list_videos.txt'
ann_file_val = 'mit_val_list_videos.txt'
num_classes = 339
metainfo = dict(classes=f'{data_root}/label_map.txt')

dataset = dict(
    data_root=data_root, metainfo=metainfo, num_classes=num_classes)
train_dataloader = dict(
    dataset=dict(
        ann_file=ann_file_train,
        data_prefix=dict(video=video_dir_train),
        **dataset))
val_dataloader = dict(
    dataset=dict(
        ann_file=ann_file_val,
        data_prefix=dict(video=video_dir_val),
        **dataset))
test_dataloader = val_dataloader
