# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Clips of 16 frames with a stride of 4. To test three crops:
#     --cfg-options test_dataloader.dataset.pipeline.4.type=ThreeCrop
_base_ = 'dualformer.py'

from mmvidattn.utils.config import derive

apart = dict(frame_interval=4)
derive(
    _base_,
    num_frames=16,
    train_pipeline=dict(SampleFrames=apart),
    val_pipeline=dict(SampleFrames=apart),
    test_pipeline=dict(CenteredSampleFrames=apart))
