# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Clips of 16 frames, every fourth one. Three crops in testing:
#     --cfg-options test_dataloader.dataset.pipeline.4.type=ThreeCrop
_base_ = 'dualformer.py'

from mmvidattn.utils.config import change

clip = dict(clip_len=16, frame_interval=4)
clip_train_pipeline = change(_base_.clip_train_pipeline, SampleFrames=clip)
clip_val_pipeline = change(_base_.clip_val_pipeline, SampleFrames=clip)
clip_test_pipeline = change(
    _base_.clip_test_pipeline, CenteredSampleFrames=clip)
