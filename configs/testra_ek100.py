# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0. TeSTra on
# EPIC-Kitchens-100, Laplace kernel. Paper, Table 3: mean top-5 recall 30.8 of
# verbs, 35.8 of nouns, 17.6 of actions, with protocol='testra' of the metric.
_base_ = [
    '_base_/models/testra_ek100.py', '_base_/datasets/ek100_features.py',
    '_base_/schedules/adam_30e_testra_ek100.py', '_base_/default_runtime.py'
]

from mmvidattn.utils.config import derive

derive(_base_)
