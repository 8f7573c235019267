# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# vivit_b16x2_fact_encoder_k400 as a stream: the temporal encoder has linear
# attention to the same and all previous frames, with decay. 16 single frames
# with a stride of 4 replace 16 tubelets of 2 frames. Not from the paper, and
# not trained here.
_base_ = 'vivit_b16x2_fact_encoder_k400.py'

from mmvidattn.utils.config import derive

stride = dict(ScenicSampleFrames=dict(frame_interval=4))
derive(
    _base_,
    num_frames=16,
    train_pipeline=stride,
    val_pipeline=stride,
    test_pipeline=stride)

model = dict(
    backbone=dict(
        tubelet_frames=1,
        causal=dict(
            attention=dict(
                type='LinearAttention', kernel='relu', offset='auto'),
            decay=dict(half_life=(4, 64), learned=True))),
    cls_head=dict(
        _delete_=True,
        type='LinearVideoTransformerHead',
        num_classes=400,
        in_channels=768,
        dropout_ratio=0.,
        average_clips='score'))
