# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# vivit_b16x2_fact_encoder_k400 as a stream: the temporal encoder has linear
# attention to the same and all previous frames, with decay. 16 single frames
# with a stride of 4 replace 16 tubelets of 2 frames. Not from the paper, and
# not trained here.
_base_ = 'vivit_b16x2_fact_encoder_k400.py'

num_frames = 16
model = dict(
    backbone=dict(
        num_frames=num_frames,
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

_base_.train_pipeline[1].clip_len = num_frames
_base_.train_pipeline[1].frame_interval = 4
_base_.val_pipeline[1].clip_len = num_frames
_base_.val_pipeline[1].frame_interval = 4
_base_.test_pipeline[1].clip_len = num_frames
_base_.test_pipeline[1].frame_interval = 4
train_dataloader = dict(dataset=dict(pipeline=_base_.train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=_base_.val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
