# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# EPIC-Kitchens-100 with the official lists (epic-kitchens-100-annotations), in
# the folders of the official download script: P01/videos/P01_01.MP4. A sample
# has two labels, the noun's number and 300 + the verb's number.
_base_ = 'kinetics400.py'

from mmvidattn.utils.config import derive

num_nouns, num_verbs = 300, 97
derive(
    _base_,
    data_root='data/epic_kitchens100',
    num_classes=num_nouns + num_verbs)

video_dir = ''
filename_tmpl = '{0:.3}/videos/{0}.MP4'
ann_file_train = 'EPIC_100_train.csv'
ann_file_val = 'EPIC_100_validation.csv'

dataset = dict(
    type='VideoSegmentDataset',
    data_prefix=dict(video=video_dir),
    filename_tmpl=filename_tmpl,
    multi_class=True,
    num_nouns=num_nouns)
train_dataloader = dict(dataset=dict(ann_file=ann_file_train, **dataset))
val_dataloader = dict(dataset=dict(ann_file=ann_file_val, **dataset))
test_dataloader = val_dataloader

val_evaluator = dict(
    _delete_=True, type='VerbNounAccuracy', num_nouns=num_nouns)
test_evaluator = val_evaluator
