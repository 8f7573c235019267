# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Clips of 16 frames, every fourth one. Three crops in testing:
#     --cfg-options test_dataloader.dataset.pipeline.4.type=ThreeCrop
_base_ = 'dualformer.py'

clip_train_pipeline = _base_.clip_train_pipeline
clip_val_pipeline = _base_.clip_val_pipeline
clip_test_pipeline = _base_.clip_test_pipeline
for pipeline in (clip_train_pipeline, clip_val_pipeline, clip_test_pipeline):
    pipeline[1].update(clip_len=16, frame_interval=4)
del pipeline
