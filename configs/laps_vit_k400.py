# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS (VT), on ViT-B/16: 8 x 224 x 224. Paper, Table 3: top-1 78.15, 146.0 G
# multiply-accumulates per view, 86.1 M parameters.
_base_ = 'laps_visformer_k400.py'

# ViT-B/16, as in the released code; see the class VisionTransformerLAPS. Set
# init_cfg of the backbone to ImageNet-21k weights.
model = dict(
    backbone=dict(
        _delete_=True,
        type='VisionTransformerLAPS',
        arch='base',
        num_frames=8,
        img_size=224,
        attention='leap',
        shift='periodic',
        pyramid=(1, 2, 3, 1),
        shift_fraction=1 / 4,
        shift_first='next'),
    data_preprocessor=dict(
        mean=[127.5, 127.5, 127.5], std=[127.5, 127.5, 127.5]))

train_dataloader = dict(batch_size=18)
val_dataloader = dict(batch_size=18)

optim_wrapper = dict(optimizer=dict(lr=0.18))
auto_scale_lr = dict(base_batch_size=72)
