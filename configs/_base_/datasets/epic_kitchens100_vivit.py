# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# EPIC-Kitchens-100, each action cut to a video of its own, as ViViT reads it:
# 32 frames in a row. A line of the annotations is the path, the number of the
# noun, and 300 + the number of the verb.
_base_ = 'kinetics400_vivit.py'

data_root = 'data/epic_kitchens100'
video_dir = 'videos'
ann_file_train = 'epic_kitchens100_train_list_videos.txt'
ann_file_val = 'epic_kitchens100_val_list_videos.txt'
num_nouns, num_verbs = 300, 97
num_classes = num_nouns + num_verbs
metainfo = dict(classes=f'{data_root}/label_map.txt')

train_pipeline = _base_.train_pipeline
train_pipeline[6] = dict(type='RandAugment', num_ops=2, magnitude=10)
val_pipeline = _base_.val_pipeline
test_pipeline = _base_.test_pipeline
test_pipeline[3].update(scale=(-1, 256))
test_pipeline[4].update(type='CenterCrop')
for pipeline in (train_pipeline, val_pipeline, test_pipeline):
    pipeline[1].update(frame_interval=1)
del pipeline

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
del dataset

val_evaluator = dict(
    _delete_=True, type='VerbNounAccuracy', num_nouns=num_nouns)
test_evaluator = val_evaluator
