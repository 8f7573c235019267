# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 6b: fusion of the memories.
table = 'Table 6b'
base = 'testra_rgb_ek100'
LOADERS = 'train_dataloader', 'val_dataloader', 'test_dataloader'

rows = dict(
    testra_table06b_compressed_memory=dict(
        row='the work memory beside the compressed one',
        paper='recall of actions 17.0'),
    testra_table06b_long_memory=dict(
        row='the work memory behind the long one',
        paper='recall of actions 16.0',
        model=dict(backbone=dict(fusion='long'))),
    testra_table06b_no_fuse=dict(
        row='the memories apart',
        paper='recall of actions 15.9',
        model=dict(backbone=dict(fusion='none'))),
    testra_table06b_no_long_memory=dict(
        row='without a long memory',
        paper='recall of actions 16.1',
        # There is nothing to mix clips into.
        train_pipeline=dict(MixClip=None),
        model=dict(backbone=dict(long_memory_length=0)),
        **dict.fromkeys(LOADERS, dict(dataset=dict(long_steps=0)))))
