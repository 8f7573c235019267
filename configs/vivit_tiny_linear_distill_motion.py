# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Train vivit_tiny_linear_motion.py from a trained vivit_tiny_motion.py: four
# epochs of distillation, then four epochs on the labels. Set
# model.teacher_checkpoint to the checkpoint of vivit_tiny_motion.py.
_base_ = 'vivit_tiny_linear_motion.py'

model = dict(
    type='DistilledRecognizer3D',
    teacher=dict(
        _base_.model,
        backbone=dict(
            _base_.model.backbone,
            attention=dict(type='SoftmaxAttention'),
            fixation=None)),
    teacher_checkpoint='work_dirs/vivit_tiny_motion/epoch_8.pth',
    distill_epochs=4)
