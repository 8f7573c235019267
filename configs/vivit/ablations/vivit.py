# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Rows of the tables. `options` are those of --cfg-options, applied to `base`.
rows = dict(
    # Table 1: initialization of tubelet filters.
    vivit_table01_central_frame=dict(
        table='Table 1',
        row='tubelets, central frame',
        paper='top-1 79.2',
        note='Tubelets of four frames give as many tokens as eight frames.',
        base='vivit_b16x2_joint_k400',
        options={
            'model.backbone.tubelet_frames': 4,
            'model.backbone.patch_init': 'central'}),
    vivit_table01_uniform_sampling=dict(
        table='Table 1',
        row='uniform frame sampling',
        paper='top-1 78.5',
        note='The tokens are patches of eight of the 32 frames.',
        base='vivit_b16x2_joint_k400',
        options={
            'model.backbone.tubelet_frames': 1,
            'model.backbone.sampled_frames': 8}),
    # Table 2: models on EPIC-Kitchens-100.
    vivit_table02_fact_attention_epic=dict(
        table='Table 2',
        row='Model 3 on EPIC-Kitchens-100',
        paper='action 39.1',
        base='vivit_table02_joint_epic',
        options={'model.backbone.model': 'fact_attention'}),
    vivit_table02_fact_dot_epic=dict(
        table='Table 2',
        row='Model 4 on EPIC-Kitchens-100',
        paper='action 39.5',
        base='vivit_table02_joint_epic',
        options={'model.backbone.model': 'fact_dot'}),
    vivit_table02_fact_encoder_epic=dict(
        table='Table 2',
        row='Model 2 on EPIC-Kitchens-100',
        paper='action 43.7',
        note='Uses all the regularization of Table 3, and starts from a '
        'Kinetics-400 model.',
        base='vivit_l16x2_fact_encoder_epic',
        options={
            'model.backbone.arch': 'B',
            'model.cls_head.in_channels': 768}),
    vivit_table02_joint_epic=dict(
        table='Table 2',
        row='Model 1 on EPIC-Kitchens-100',
        paper='action 43.1',
        base='vivit_table02_fact_encoder_epic',
        options={
            'model.backbone.model': 'joint',
            'model.backbone.num_temporal_layers': None}),
    # Table 3: regularization on EPIC-Kitchens-100.
    vivit_table03_augmentation=dict(
        table='Table 3',
        row='random crop, flip, color jitter',
        paper='action 38.4',
        note='Starts from an image model, as on Kinetics.',
        base='vivit_table03_stochastic_depth',
        options={'model.backbone.drop_path_rate': 0.0}),
    vivit_table03_label_smoothing=dict(
        table='Table 3',
        row='+ label smoothing',
        paper='action 43.1',
        note='Uses all the regularization of this table except mixup.',
        base='vivit_table02_fact_encoder_epic',
        options={'model.data_preprocessor.blending': None}),
    vivit_table03_rand_augment=dict(
        table='Table 3',
        row='+ random augment',
        paper='action 41.1',
        note='RandAugment replaces the color jitter, as in the complete '
        'recipe (Table 7 of the preprint, and the released config).',
        base='vivit_table03_label_smoothing',
        options={'model.cls_head.label_smooth_eps': 0.0}),
    vivit_table03_stochastic_depth=dict(
        table='Table 3',
        row='+ stochastic depth',
        paper='action 40.2',
        note='The color jitter is the same as on Kinetics.',
        base='vivit_table03_rand_augment',
        options={
            'train_pipeline': [
                dict(type='DecordInit', io_backend='disk'),
                dict(
                    type='ScenicSampleFrames',
                    clip_len=32,
                    frame_interval=1),
                dict(type='DecordDecode'),
                dict(type='Resize', scale=(-1, 256)),
                dict(type='ScaleJitter', scale_range=(0.9, 1.33)),
                dict(type='RandomCrop', size=224),
                dict(type='Flip', flip_ratio=0.5),
                dict(type='ScenicColorJitter', prob=0.8, gray_prob=0.1),
                dict(type='FormatShape', input_format='NCTHW'),
                dict(type='PackActionInputs')]}),
    # Table 4: crop size.
    vivit_table04_crop288=dict(
        table='Table 4',
        row='crops of 288',
        paper='top-1 80.7, 2919 G',
        note='The short side is 329, in proportion to 256 for crops of 224; '
        'the paper does not say.',
        base='vivit_l16x2_joint_k400',
        options={'img_size': 288}),
    vivit_table04_crop320=dict(
        table='Table 4',
        row='crops of 320',
        paper='top-1 81.0, 3992 G',
        note='The short side is 366, in proportion to 256 for crops of 224; '
        'the paper does not say.',
        base='vivit_l16x2_joint_k400',
        options={'img_size': 320}),
    # Table 5: longer clips and a larger network.
    vivit_table05_128_frames_k400=dict(
        table='Table 5',
        row='L/16x2 FE on Kinetics-400',
        paper='top-1 81.7, top-5 93.8, 11.94 T of three views',
        note='128 frames with a stride of 2 cover the 250 frames of a video,'
        ' so the test uses one clip with three crops.',
        base='vivit_l16x2_fact_encoder_k400',
        options={'num_frames': 128, 'test_pipeline.1.num_clips': 1}),
    vivit_table05_128_frames_k600=dict(
        table='Table 5',
        row='L/16x2 FE on Kinetics-600',
        paper='top-1 82.9, top-5 94.6',
        note='One clip, three crops.',
        base='vivit_l16x2_fact_encoder_k600',
        options={'num_frames': 128, 'test_pipeline.1.num_clips': 1}),
    vivit_table05_h14x2_k400=dict(
        table='Table 5',
        row='H/14x2 on Kinetics-400',
        paper='top-1 84.9, top-5 95.8, 47.77 T of twelve views',
        note='The cost is that of Model 1. Neither its weights nor its start'
        ' weights, trained on JFT, are published.',
        base='vivit_l16x2_joint_k400',
        options={
            'model.backbone.arch': 'H',
            'model.backbone.patch_size': 14,
            'model.cls_head.in_channels': 1280}),
    vivit_table05_h14x2_k600=dict(
        table='Table 5',
        row='H/14x2 on Kinetics-600',
        paper='top-1 85.8, top-5 96.5',
        note='Neither its weights nor its start weights, trained on JFT, are'
        ' published.',
        base='vivit_l16x2_fact_encoder_k600',
        options={
            'model.backbone.model': 'joint',
            'model.backbone.num_temporal_layers': None,
            'model.backbone.arch': 'H',
            'model.backbone.patch_size': 14,
            'model.cls_head.in_channels': 1280}))
