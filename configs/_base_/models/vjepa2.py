# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# V-JEPA 2, ViT-L/16, frozen, with the attentive probe of the authors. The
# clips of a video (pool_clips) are pooled together. Set the start weights:
#     model.backbone.init_cfg = dict(
#         type='Pretrained', source='vjepa2', checkpoint=FILE)
model = dict(
    type='FineTunedRecognizer3D',
    freeze='backbone',
    pool_clips=2,
    backbone=dict(type='VJEPA2', arch='L', num_frames=16),
    cls_head=dict(
        type='AttentiveHead',
        num_classes=174,
        in_channels=1024,
        num_heads=16,
        num_layers=4,
        average_clips='prob'),
    data_preprocessor=dict(
        type='ActionDataPreprocessor',
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        format_shape='NCTHW'))
