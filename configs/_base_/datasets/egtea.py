# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# EGTEA Gaze+, split 1, as Kinetics-400: segments of its long videos, in the
# folders that tools/data/egtea/README.md makes.
_base_ = 'kinetics400.py'

data_root = 'data/egtea'
video_dir = 'videos'
ann_file_train = 'egtea_train_split1.csv'
ann_file_val = 'egtea_val_split1.csv'
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
