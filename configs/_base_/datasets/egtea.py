# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0. EGTEA Gaze+,
# split 1: segments of long videos, from RULSTM's lists. Lists of trimmed clips
# work as well: see tools/data/egtea/README.md.
_base_ = 'kinetics400.py'

from mmvidattn.utils.config import derive

derive(_base_, data_root='data/egtea', num_classes=106)

video_dir = 'videos'
ann_file_train = 'training1.csv'
ann_file_val = 'validation1.csv'

dataset = dict(
    type='VideoSegmentDataset', data_prefix=dict(video=video_dir))
train_dataloader = dict(dataset=dict(ann_file=ann_file_train, **dataset))
val_dataloader = dict(dataset=dict(ann_file=ann_file_val, **dataset))
test_dataloader = val_dataloader
