# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Train xvit_linear_ssv2.py from a trained xvit_ssv2.py: five epochs of
# distillation, then 30 epochs on the labels. Set model.teacher_checkpoint to
# the checkpoint of xvit_ssv2.py. This recipe is not from a paper, and we have
# not trained it.
_base_ = 'xvit_linear_ssv2.py'

model = dict(
    type='DistilledRecognizer3D',
    teacher=dict(
        _base_.model,
        backbone=dict(
            _base_.model.backbone,
            attention=dict(type='SoftmaxAttention'),
            fixation=None)),
    teacher_checkpoint='work_dirs/xvit_ssv2/epoch_35.pth',
    distill_epochs=5)
