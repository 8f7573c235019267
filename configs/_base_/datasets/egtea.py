# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# EGTEA Gaze+, split 1, as Kinetics-400: segments of long videos, by RULSTM's
# lists. Lists of trimmed clips do as well: see tools/data/egtea/README.md.
_base_ = 'kinetics400.py'

data_root = 'data/egtea'
video_dir = 'videos'
ann_file_train = 'training1.csv'
ann_file_val = 'validation1.csv'
num_classes = 106
metainfo = dict(classes=f'{data_root}/label_map.txt')

dataset = dict(
    type='VideoSegmentDataset',
    data_root=data_root,
    data_prefix=dict(video=video_dir),
    metainfo=metainfo,
    num_classes=num_classes)
train_dataloader = dict(dataset=dict(ann_file=ann_file_train, **dataset))
val_dataloader = dict(dataset=dict(ann_file=ann_file_val, **dataset))
test_dataloader = val_dataloader
