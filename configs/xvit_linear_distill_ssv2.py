# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# xvit_linear_ssv2.py from a trained xvit_ssv2.py, whose checkpoint is
# model.teacher_checkpoint: five epochs of distillation, then 30 of the task.
# No paper contains this recipe, and we have not trained it.
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
