# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# The paper's network on Something-Something v2, with shifts over whole windows
# (A.3) and the settings of Table 10.
_base_ = [
    '_base_/models/linear_ff.py', '_base_/models/linear_ff_paper.py',
    '_base_/datasets/ssv2.py', '_base_/pipelines/linear_ff_ssv2.py',
    '_base_/schedules/sgd_35e_paper.py', '_base_/default_runtime.py'
]

from mmvidattn.utils.config import derive

derive(_base_)


model = dict(
    backbone=dict(
        **_base_.paper_network,
        temporal_shift=dict(
            _delete_=True, mode='window', size=4, alpha=0.5),
        spatial_shift=dict(_delete_=True, mode='cross', size=1, alpha=0.5)))
