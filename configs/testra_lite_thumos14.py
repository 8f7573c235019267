# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# TeSTra on THUMOS'14, with optical flow by NVIDIA's hardware, box kernel.
# Paper, Table 1: 67.3 mAP. It needs the published features: none of our flows
# is NVIDIA's. DIS (--flow-method dis) is the nearest, as a fast flow of
# patches; how the scores change is not measured.
_base_ = 'testra_box_thumos14.py'

flow = dict(data_prefix=dict(flow='flow_nv_kinetics_bninception'))
train_dataloader = dict(dataset=flow)
val_dataloader = dict(dataset=flow)
test_dataloader = dict(dataset=flow)
