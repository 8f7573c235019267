# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Anticipation on EPIC-Kitchens-100 from pixels, with one causal network and
# a state of constant size. Not from a paper, and not trained here.
_base_ = [
    '_base_/models/linear_ff_causal_online.py',
    '_base_/datasets/video_streams.py',
    '_base_/schedules/adamw_20e_causal.py', '_base_/default_runtime.py'
]

# 67,217 training and 9,668 validation segments. 3,807 actions, 98 verbs and
# 301 nouns, each with the background (0). The lists are RULSTM's; the videos
# are in the folders of the official download script: P01/videos/P01_01.MP4.
data_root = 'data/ek100'
num_classes, num_verbs, num_nouns = 3807, 98, 301

model = dict(
    backbone=dict(num_anticipation_tokens=2, encoder=dict(with_cp=True)),
    cls_head=dict(
        num_classes=num_classes,
        num_verbs=num_verbs,
        num_nouns=num_nouns,
        loss_cls=dict(ignore_index=0),
        score='logit'))

dataset = dict(
    data_root=data_root,
    data_prefix=dict(video=''),
    filename_tmpl='{0:.3}/videos/{0}.MP4',
    num_classes=num_classes,
    num_verbs=num_verbs,
    num_nouns=num_nouns,
    anticipation_steps=8,
    anticipation_rate=4)
train_dataloader = dict(dataset=dict(ann_file='training.csv', **dataset))
# As for features, see _base_/datasets/ek100_features.py.
val_dataloader = dict(
    dataset=dict(ann_file='validation.csv', protocol='testra', **dataset))
test_dataloader = val_dataloader

val_evaluator = dict(
    type='MeanTopKRecall',
    subsets=dict(
        unseen=f'{data_root}/validation_unseen_participants_ids.csv',
        tail_verb=f'{data_root}/validation_tail_verbs_ids.csv',
        tail_noun=f'{data_root}/validation_tail_nouns_ids.csv',
        tail_action=f'{data_root}/validation_tail_actions_ids.csv'))
test_evaluator = val_evaluator
