# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 6, w.o PEG. Paper: top-1 78.9.
_base_ = '../../dualformer_tiny_k400.py'

model = dict(backbone=dict(position='none'))
