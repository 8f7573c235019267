# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# dualformer_tiny_tl_k400.py with four augmented views of each video, whose
# token labels the teacher has stored in a folder:
#     python tools/data/token_labels.py dualformer_tiny_tl_stored_k400
_base_ = 'dualformer_tiny_tl_k400.py'

from mmvidattn.utils.config import change, derive

transforms = change(
    _base_.train_pipeline, FormatShape=None, PackActionInputs=None)
derive(
    _base_,
    train_pipeline=[
        dict(type='FixedViews', num_views=4, transforms=transforms),
        dict(type='FormatShape', input_format='NCTHW'),
        dict(
            type='PackActionInputs',
            meta_keys=('img_shape', 'filename', 'view'))
    ])

model = dict(label_store='data/kinetics400/token_labels')
