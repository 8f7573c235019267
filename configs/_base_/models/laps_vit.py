# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# ViT-B/16 with leap attention and periodic shift, as in the released code; see
# the class VisionTransformerLAPS. Set init_cfg of the backbone to ImageNet-21k
# weights.
_base_ = 'laps_visformer.py'

model = dict(
    backbone=dict(
        _delete_=True,
        type='VisionTransformerLAPS',
        arch='base',
        num_frames=None,
        img_size=None,
        attention='leap',
        shift='periodic',
        pyramid=(1, 2, 3, 1),
        shift_fraction=1 / 4,
        shift_first='next'),
    data_preprocessor=dict(
        mean=[127.5, 127.5, 127.5], std=[127.5, 127.5, 127.5]))
