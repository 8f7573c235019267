# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Rows of the tables. `options` are those of --cfg-options, applied to `base`.
# Settings of the released files.
RELEASED = {
    'train_pipeline.3.scale_range': (224, 320),
    'model.backbone.shift_fraction': 1 / 8,
    'optim_wrapper.optimizer.lr': 0.09023}
# Model of laps_vit_k400 without leap attention and shift.
VIT = {
    'model.backbone': dict(
        _delete_=True,
        type='VisionTransformerLAPS',
        arch='base',
        num_frames=8,
        attention='2d',
        shift='none',
        pyramid=(1, 2, 3, 1),
        shift_fraction=1 / 4,
        shift_first='next'),
    'model.data_preprocessor.mean': [127.5, 127.5, 127.5],
    'model.data_preprocessor.std': [127.5, 127.5, 127.5]}

rows = dict(
    # Table 1: leap attention and periodic shift.
    laps_table01_leap=dict(
        table='Table 1',
        row='LA',
        paper='top-1 75.84, 40.1 G, 39.8 M',
        base='laps_visformer_k400',
        options={'model.backbone.shift': 'none'}),
    laps_table01_periodic_shift=dict(
        table='Table 1',
        row='P-Shift',
        paper='top-1 75.19, 39.1 G, 39.8 M',
        base='laps_visformer_k400',
        options={'model.backbone.attention': '2d'}),
    laps_table01_plain_shift=dict(
        table='Table 1',
        row='plain shift',
        paper='top-1 74.86, 39.1 G, 39.8 M',
        base='laps_visformer_k400',
        options={
            'model.backbone.attention': '2d',
            'model.backbone.shift': 'plain'}),
    # Table 2: leaps.
    laps_table02_r1=dict(
        table='Table 2',
        row='R = [1, 1, 1]',
        paper='top-1 75.86',
        base='laps_visformer_k400',
        options={'model.backbone.pyramid': (1,)}),
    laps_table02_r1_v1=dict(
        table='Table 2',
        row='R = [1, 1, 1], as its released file has it',
        paper='top-1 75.86',
        base='laps_table02_r1',
        options=RELEASED),
    laps_table02_r2=dict(
        table='Table 2',
        row='R = [2, 2, 2]',
        paper='top-1 75.82',
        base='laps_visformer_k400',
        options={'model.backbone.pyramid': (2,)}),
    laps_table02_r2_v1=dict(
        table='Table 2',
        row='R = [2, 2, 2], as its released file has it',
        paper='top-1 75.82',
        base='laps_table02_r2',
        options=RELEASED),
    laps_table02_r3=dict(
        table='Table 2',
        row='R = [3, 3, 3]',
        paper='top-1 75.55',
        base='laps_visformer_k400',
        options={'model.backbone.pyramid': (3,)}),
    laps_table02_r3_v1=dict(
        table='Table 2',
        row='R = [3, 3, 3], as its released file has it',
        paper='top-1 75.55',
        base='laps_table02_r3',
        options=RELEASED),
    # Table 3: baselines without time on other networks.
    laps_table03_rest_s_base2d=dict(
        table='Table 3',
        row='Base2D on ResT-S',
        paper='top-1 68.13, 16.9 G, 13.4 M',
        base='laps_rest_s_k400',
        options={
            'model.backbone.attention': '2d',
            'model.backbone.shift': 'none'}),
    laps_table03_vit_base2d=dict(
        table='Table 3',
        row='Base2D on ViT',
        paper='top-1 76.41, 141.0 G, 86.1 M',
        base='laps_vit_k400',
        options={
            'model.backbone.attention': '2d',
            'model.backbone.shift': 'none',
            'train_dataloader.batch_size': 24,
            'val_dataloader.batch_size': 24,
            'optim_wrapper.optimizer.lr': 0.24,
            'auto_scale_lr.base_batch_size': 96}),
    # Table 4: rivals on Kinetics-400.
    laps_table04_tokshift_mr=dict(
        table='Table 4',
        row='TokShift (MR): 8 x 256 x 256',
        paper='top-1 77.68, top-5 93.55, 175.8 G, 85.9 M; without the '
        'products of attention, as "ViT (Video)"',
        note="The learning rate follows TokShift's repository: 16 clips on "
        'each of two GPUs.',
        base='laps_vit_k400',
        options={
            'img_size': 256,
            'model.backbone.attention': '2d',
            'model.backbone.shift': 'token',
            'train_dataloader.batch_size': 16,
            'val_dataloader.batch_size': 16,
            'optim_wrapper.optimizer.lr': 0.076,
            'auto_scale_lr.base_batch_size': 32,
            'train_pipeline.1.frame_interval': 32,
            'train_pipeline.3.scale_range': (256, 380),
            'val_pipeline.1.frame_interval': 32,
            'test_pipeline.1.frame_interval': 32}),
    laps_table04_vit_8x32=dict(
        table='Table 4',
        row='ViT (Video): 8 x 224 x 224, frames 32 apart',
        paper='top-1 76.00, top-5 92.50, 134.7 G, 85.9 M; without the '
        'products of attention',
        base='laps_table03_vit_base2d',
        options={
            'train_pipeline.1.frame_interval': 32,
            'val_pipeline.1.frame_interval': 32,
            'test_pipeline.1.frame_interval': 32}),
    # Table 5: rivals on UCF-101.
    laps_table05_tokshift_l_hr_ucf101=dict(
        table='Table 5',
        row='TokShift-L (HR): 8 x 384 x 384',
        paper='top-1 96.80',
        base='laps_table05_tokshift_ucf101',
        options={
            'img_size': 384,
            'model.backbone.arch': 'large',
            'model.cls_head.in_channels': 1024,
            'train_dataloader.batch_size': 1,
            'val_dataloader.batch_size': 1,
            'optim_wrapper.optimizer.lr': 0.01,
            'auto_scale_lr.base_batch_size': 4,
            'train_pipeline.3.scale_range': (384, 480)}),
    laps_table05_tokshift_ucf101=dict(
        table='Table 5',
        row='TokShift: 8 x 256 x 256',
        paper='top-1 95.35',
        base='laps_table05_vit_ucf101',
        options={'model.backbone.shift': 'token'}),
    laps_table05_vit_ucf101=dict(
        table='Table 5',
        row='ViT (Video): 8 x 256 x 256',
        paper='top-1 91.46',
        base='laps_visformer_ucf101',
        options={
            'img_size': 256,
            **VIT,
            'model.backbone.img_size': 256,
            'train_dataloader.batch_size': 16,
            'val_dataloader.batch_size': 16,
            'optim_wrapper.optimizer.lr': 0.076,
            'auto_scale_lr.base_batch_size': 32,
            'train_pipeline.3.scale_range': (256, 380)}),
    # Table 6: rivals on EGTEA Gaze+.
    laps_table06_tokshift_egtea=dict(
        table='Table 6',
        row='TokShift: 8 x 224 x 224',
        paper='top-1 64.82',
        base='laps_table06_vit_egtea',
        options={'model.backbone.shift': 'token'}),
    laps_table06_tokshift_hr_egtea=dict(
        table='Table 6',
        row='TokShift (HR): 8 x 384 x 384',
        paper='top-1 65.77',
        base='laps_table06_tokshift_egtea',
        options={
            'img_size': 384,
            'train_dataloader.batch_size': 5,
            'val_dataloader.batch_size': 5,
            'optim_wrapper.optimizer.lr': 0.05,
            'auto_scale_lr.base_batch_size': 20,
            'train_pipeline.3.scale_range': (384, 512)}),
    laps_table06_vit_egtea=dict(
        table='Table 6',
        row='ViT (Video): 8 x 224 x 224',
        paper='top-1 62.59',
        base='laps_visformer_h_egtea',
        options={
            'num_frames': 8,
            'img_size': 224,
            **VIT,
            'model.backbone.img_size': 224,
            'train_dataloader.batch_size': 24,
            'val_dataloader.batch_size': 24,
            'optim_wrapper.optimizer.lr': 0.24,
            'auto_scale_lr.base_batch_size': 96,
            'train_pipeline.3.scale_range': (224, 360)}))
