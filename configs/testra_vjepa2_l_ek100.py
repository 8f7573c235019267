# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# TeSTra on features of V-JEPA 2 ViT-L, which --rate 4 of
#     mmvidattn extract-features VIDEOS data/ek100/vjepa2_l \
#         vjepa2_l_features --checkpoint vjepa2_l --frame-interval 4
# computes from clips of one second at 60 frames/s. No paper trains this model.
_base_ = 'testra_rgb_ek100.py'

rgb = dict(rgb='vjepa2_l')
train_dataloader = dict(dataset=dict(data_prefix=rgb))
val_dataloader = dict(dataset=dict(data_prefix=rgb))
test_dataloader = dict(dataset=dict(data_prefix=rgb))

# For mmvidattn stream: the extractor of the features.
online = dict(extractors=dict(rgb=dict(
    config='vjepa2_l_features', checkpoint='vjepa2_l', frame_interval=4)))
