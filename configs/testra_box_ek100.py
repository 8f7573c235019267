# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# TeSTra on EPIC-Kitchens-100, box kernel: mean top-5 recall of actions 17.0 on
# the authors' page.
_base_ = 'testra_ek100.py'

model = dict(backbone=dict(decay=1.))
