# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# SGD with Nesterov momentum and a cosine schedule to zero, updated at each
# iteration. The cosine starts with the training. For five epochs, the rate
# rises linearly to its value. The rate is for 32 clips per batch. Weight decay
# applies to all parameters except the biases after the encoder (the head's
# norm and two layers).
optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(
        type='SGD', lr=0.03, momentum=0.9, nesterov=True, weight_decay=1e-4),
    paramwise_cfg=dict(
        custom_keys={
            'cls_head.norm.bias': dict(decay_mult=0.),
            'cls_head.fc_hidden.bias': dict(decay_mult=0.),
            'cls_head.fc_cls.bias': dict(decay_mult=0.)
        }))
param_scheduler = [
    dict(
        type='WarmupCosineLR',
        curve='line',
        warmup=5,
        start_factor=0.1,
        by_epoch=True,
        begin=0,
        end=35,
        convert_to_iter_based=True)
]
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=35, val_interval=1)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
auto_scale_lr = dict(enable=False, base_batch_size=32)
