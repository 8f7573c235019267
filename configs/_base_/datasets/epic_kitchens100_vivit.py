# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# EPIC-Kitchens-100, each action cut to a video of its own, as ViViT reads it:
# 32 frames in a row. A line of the annotations is the path, the number of the
# noun, and 300 + the number of the verb.
_base_ = 'kinetics400_vivit.py'

from mmvidattn.utils.config import change

data_root = 'data/epic_kitchens100'
video_dir = 'videos'
ann_file_train = 'epic_kitchens100_train_list_videos.txt'
ann_file_val = 'epic_kitchens100_val_list_videos.txt'
num_nouns, num_verbs = 300, 97
num_classes = num_nouns + num_verbs
metainfo = dict(classes=f'{data_root}/label_map.txt')

in_a_row = dict(frame_interval=1)
train_pipeline = change(
    _base_.train_pipeline,
    SampleFrames=in_a_row,
    RandomApply=dict(
        _delete_=True, type='RandAugment', num_ops=2, magnitude=10))
val_pipeline = change(_base_.val_pipeline, SampleFrames=in_a_row)
test_pipeline = change(
    _base_.test_pipeline, SampleFrames=in_a_row,
    Resize=dict(scale=(-1, 256)), ThreeCrop=dict(type='CenterCrop'))

dataset = dict(
    data_root=data_root,
    data_prefix=dict(video=video_dir),
    metainfo=metainfo,
    multi_class=True,
    num_classes=num_classes)
train_dataloader = dict(
    dataset=dict(
        ann_file=ann_file_train, pipeline=train_pipeline, **dataset))
val_dataloader = dict(
    dataset=dict(ann_file=ann_file_val, pipeline=val_pipeline, **dataset))
test_dataloader = dict(
    dataset=dict(ann_file=ann_file_val, pipeline=test_pipeline, **dataset))

val_evaluator = dict(
    _delete_=True, type='VerbNounAccuracy', num_nouns=num_nouns)
test_evaluator = val_evaluator
