# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# EPIC-Kitchens-100 as ViViT reads it: 32 frames in a row of each segment. The
# lists are the official ones (epic-kitchens-100-annotations), the long videos
# lie as the official script downloads them: P01/videos/P01_01.MP4. A sample
# has two labels, the number of the noun and 300 + that of the verb.
_base_ = 'kinetics400_vivit.py'

from mmvidattn.utils.config import change

data_root = 'data/epic_kitchens100'
video_dir = ''
filename_tmpl = '{0:.3}/videos/{0}.MP4'
ann_file_train = 'EPIC_100_train.csv'
ann_file_val = 'EPIC_100_validation.csv'
num_nouns, num_verbs = 300, 97
num_classes = num_nouns + num_verbs
metainfo = dict(classes=f'{data_root}/label_map.txt')

in_a_row = dict(frame_interval=1)
train_pipeline = change(
    _base_.train_pipeline,
    ScenicSampleFrames=in_a_row,
    ScenicColorJitter=dict(
        _delete_=True, type='ScenicRandAugment', num_ops=2, magnitude=15))
val_pipeline = change(_base_.val_pipeline, ScenicSampleFrames=in_a_row)
test_pipeline = change(
    _base_.test_pipeline,
    ScenicSampleFrames=in_a_row,
    UniformThreeCrop=dict(type='CenterCrop'))

dataset = dict(
    type='VideoSegmentDataset',
    data_root=data_root,
    data_prefix=dict(video=video_dir),
    filename_tmpl=filename_tmpl,
    metainfo=metainfo,
    multi_class=True,
    num_nouns=num_nouns,
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
