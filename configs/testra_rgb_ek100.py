# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# TeSTra on EPIC-Kitchens-100 without optical flow, the model of the ablations.
# Paper, Table 3: mean top-5 recall 26.8 of verbs, 36.2 of nouns, 17.0 of
# actions.
_base_ = 'testra_ek100.py'

rgb = dict(
    rgb='rgb_kinetics_bninception',
    gt_action='target_perframe',
    gt_verb='verb_perframe',
    gt_noun='noun_perframe')
model = dict(backbone=dict(in_channels=dict(_delete_=True, rgb=1024)))
train_dataloader = dict(
    dataset=dict(data_prefix=dict(_delete_=True, **rgb)))
val_dataloader = dict(dataset=dict(data_prefix=dict(_delete_=True, **rgb)))
test_dataloader = dict(dataset=dict(data_prefix=dict(_delete_=True, **rgb)))
