# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 6: position encodings.
table = 'Table 6'
base = 'dualformer_tiny_k400'

rows = dict(
    dualformer_table06_none=dict(
        row='w.o PEG',
        paper='top-1 78.9',
        model=dict(backbone=dict(position='none'))),
    dualformer_table06_relative=dict(
        row='Swin',
        paper='top-1 79.3',
        model=dict(backbone=dict(position='relative'))))
