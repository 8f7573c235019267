# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# EPIC-Kitchens-100 as features at 4 Hz, to anticipate its 67,217 training and
# 9,668 validation segments. 3,807 actions, 98 verbs and 301 nouns, each with
# the background (0). The lists of segments and of subsets are RULSTM's.
dataset_type = 'FeatureStreamDataset'
data_root = 'data/ek100'
num_classes, num_verbs, num_nouns = 3807, 98, 301
feature_dims = dict(
    rgb=1024,
    flow=1024,
    gt_action=num_classes,
    gt_verb=num_verbs,
    gt_noun=num_nouns)
data_prefix = dict(
    rgb='rgb_kinetics_bninception',
    flow='flow_kinetics_bninception',
    gt_action='target_perframe',
    gt_verb='verb_perframe',
    gt_noun='noun_perframe')
memory = dict(
    long_steps=256,
    long_rate=4,
    work_steps=20,
    work_rate=2,
    anticipation_steps=8,
    anticipation_rate=4)

train_pipeline = [
    # As in the paper; the released code corresponds to mode='single'.
    dict(type='MixClip', prob=0.5),
    dict(type='LoadFeatureWindow'),
    dict(type='PackFeatureInputs')
]
test_pipeline = [
    dict(type='LoadFeatureWindow'),
    dict(type='PackFeatureInputs')
]
dataset = dict(
    type=dataset_type,
    data_root=data_root,
    data_prefix=data_prefix,
    feature_dims=feature_dims,
    feature_rate=4.,
    video_fps=30.,
    windows='segments',
    **memory)

train_dataloader = dict(
    batch_size=32,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='RandomOffsetSampler'),
    dataset=dict(
        ann_file='train.txt',
        segment_file='training.csv',
        pipeline=train_pipeline,
        **dataset))
# protocol='testra' computes the paper's score, which anticipates a quarter to
# half a second ahead. With 'strict', the model sees nothing later than one
# second before the action.
val_dataloader = dict(
    batch_size=32,
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        ann_file='val.txt',
        segment_file='validation.csv',
        protocol='testra',
        test_mode=True,
        pipeline=test_pipeline,
        **dataset))
test_dataloader = val_dataloader

val_evaluator = dict(
    type='MeanTopKRecall',
    subsets=dict(
        unseen=f'{data_root}/validation_unseen_participants_ids.csv',
        tail_verb=f'{data_root}/validation_tail_verbs_ids.csv',
        tail_noun=f'{data_root}/validation_tail_nouns_ids.csv',
        tail_action=f'{data_root}/validation_tail_actions_ids.csv'))
test_evaluator = val_evaluator
