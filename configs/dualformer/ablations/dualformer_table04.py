# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 4: window sizes.
table = 'Table 4'
base = 'dualformer_tiny_k400'

rows = dict(
    dualformer_table04_16f_window4_7_7=dict(
        row='16 x 4 frames, window (4, 7, 7)',
        paper='104 G for 4 x 1 views, top-1 78.0, top-5 93.2',
        base='dualformer_table04_16f_window8_7_7',
        model=dict(backbone=dict(window_size=(4, 7, 7)))),
    dualformer_table04_16f_window8_7_7=dict(
        row='16 x 4 frames, window (8, 7, 7)',
        paper='112 G for 4 x 1 views, top-1 78.4, top-5 93.3',
        note="The pyramid's kernels are for 32 frames, which gives the "
        "paper's cost.",
        num_frames=16,
        train_pipeline=dict(SampleFrames=dict(frame_interval=4)),
        val_pipeline=dict(SampleFrames=dict(frame_interval=4)),
        test_pipeline=dict(CenteredSampleFrames=dict(frame_interval=4)),
        model=dict(backbone=dict(num_frames=32))),
    dualformer_table04_window16_7_7=dict(
        row='32 x 2 frames, window (16, 7, 7)',
        paper='272 G for 4 x 1 views, top-1 79.7, top-5 94.4',
        model=dict(backbone=dict(window_size=(16, 7, 7)))),
    dualformer_table04_window4_7_7=dict(
        row='32 x 2 frames, window (4, 7, 7)',
        paper='224 G for 4 x 1 views, top-1 79.1, top-5 93.9',
        model=dict(backbone=dict(window_size=(4, 7, 7)))),
    dualformer_table04_window8_14_14=dict(
        row='32 x 2 frames, window (8, 14, 14)',
        paper='324 G for 4 x 1 views, top-1 79.7, top-5 94.5',
        model=dict(backbone=dict(window_size=(8, 14, 14)))))
