# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 5: longer clips and a larger network.
table = 'Table 5'
base = 'vivit_l16x2_fact_encoder_k600'

rows = dict(
    vivit_table05_128_frames_k400=dict(
        row='L/16x2 FE on Kinetics-400',
        paper='top-1 81.7, top-5 93.8, 11.94 T of three views',
        note='128 frames with a stride of 2 cover the 250 frames of a '
        'video, so the test uses one clip with three crops.',
        base='vivit_l16x2_fact_encoder_k400',
        num_frames=128,
        test_pipeline=dict(ScenicSampleFrames=dict(num_clips=1))),
    vivit_table05_128_frames_k600=dict(
        row='L/16x2 FE on Kinetics-600',
        paper='top-1 82.9, top-5 94.6',
        note='One clip, three crops.',
        num_frames=128,
        test_pipeline=dict(ScenicSampleFrames=dict(num_clips=1))),
    vivit_table05_h14x2_k400=dict(
        row='H/14x2 on Kinetics-400',
        paper='top-1 84.9, top-5 95.8, 47.77 T of twelve views',
        note='The cost is that of Model 1. Neither its weights nor its start '
        'weights, trained on JFT, are published.',
        base='vivit_l16x2_joint_k400',
        model=dict(
            backbone=dict(arch='H', patch_size=14),
            cls_head=dict(in_channels=1280))),
    vivit_table05_h14x2_k600=dict(
        row='H/14x2 on Kinetics-600',
        paper='top-1 85.8, top-5 96.5',
        note='Neither its weights nor its start weights, trained on JFT, are '
        'published.',
        model=dict(
            backbone=dict(
                model='joint',
                num_temporal_layers=None,
                arch='H',
                patch_size=14),
            cls_head=dict(in_channels=1280))))
