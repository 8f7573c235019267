# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# TeSTra on THUMOS'14, box kernel: 71.2 mAP on the authors' page.
_base_ = 'testra_thumos14.py'

model = dict(backbone=dict(decay=1.))
