# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS (H) fine-tuned on EGTEA Gaze+, split 1: 32 x 320 x 320. Paper, Table 6:
# top-1 66.07. Set load_from, or init_cfg of the backbone, to a checkpoint of
# laps_visformer_h_k400.py.
_base_ = 'laps_visformer_h_k400.py'

# EGTEA Gaze+, split 1: segments of long videos, from RULSTM's lists. Lists of
# trimmed clips work as well: see tools/data/egtea/README.md.
data_root = 'data/egtea'
num_classes = 106
dataset = dict(
    type='VideoSegmentDataset',
    data_root=data_root,
    data_prefix=dict(video='videos'),
    metainfo=dict(classes=f'{data_root}/label_map.txt'),
    num_classes=num_classes)
train_dataloader = dict(dataset=dict(ann_file='training1.csv', **dataset))
val_dataloader = dict(dataset=dict(ann_file='validation1.csv', **dataset))
test_dataloader = dict(dataset=dict(ann_file='validation1.csv', **dataset))

model = dict(cls_head=dict(num_classes=num_classes))

# The paper's schedule for EGTEA Gaze+ (Sec. 4.4).
_base_.param_scheduler[0].milestones = [20, 30]
_base_.param_scheduler[0].end = 36
train_cfg = dict(max_epochs=36)
