# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# dualformer_tiny_motion.py with token labels of a trained
# dualformer_wide_motion.py: model.teacher_checkpoint.
_base_ = 'dualformer_tiny_motion.py'

model = dict(
    type='TokenLabelRecognizer3D',
    cls_head=dict(type='TokenLabelHead', token_dropout_ratio=0.1),
    teacher=dict(
        type='Recognizer3D',
        backbone=dict(
            type='DualFormer',
            arch=dict(
                embed_dims=72,
                num_layers=(2, 2, 2, 2),
                num_heads=(3, 6, 12, 24)),
            num_frames=8,
            img_size=64,
            patch_size=(2, 8, 8),
            window_size=(4, 4, 4),
            pyramid_sizes=(((4, 4, 4), ), (), (), ())),
        cls_head=dict(type='I3DHead', num_classes=8, in_channels=576)),
    teacher_checkpoint='work_dirs/dualformer_wide_motion/epoch_6.pth')
