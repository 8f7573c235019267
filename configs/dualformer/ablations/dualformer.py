# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Rows of the tables. `options` are those of --cfg-options, applied to `base`.
rows = dict(
    # Table 3: levels of attention in each stage.
    dualformer_table03_gg_gg_gg_gg=dict(
        table='Table 3',
        row='(GG, GG, GG, GG)',
        paper='228 G for 4 x 1 views, 21.8 M, top-1 77.6, top-5 93.2',
        base='dualformer_tiny_tl_k400',
        options={'model.backbone.pattern': ('GG', 'GG', 'GG', 'GG')}),
    dualformer_table03_lg1=dict(
        table='Table 3',
        row='LG_1: the scale (4, 4, 4) alone, in the stages that have two',
        paper='224 G for 4 x 1 views, 21.8 M, top-1 78.4, top-5 93.4',
        base='dualformer_tiny_tl_k400',
        options={
            'model.backbone.pyramid_sizes': (
                ((4, 4, 4),),
                ((4, 4, 4),),
                ((8, 7, 7),),
                ())}),
    dualformer_table03_lg2=dict(
        table='Table 3',
        row='LG_2: the scale (8, 7, 7) alone, in every stage',
        paper='232 G for 4 x 1 views, 21.8 M, top-1 79.3, top-5 93.9',
        base='dualformer_tiny_tl_k400',
        options={
            'model.backbone.pyramid_sizes': (
                ((8, 7, 7),),
                ((8, 7, 7),),
                ((8, 7, 7),),
                ((8, 7, 7),))}),
    dualformer_table03_lg_lg_ll_ll=dict(
        table='Table 3',
        row='(LG, LG, LL, LL)',
        paper='244 G for 4 x 1 views, 21.8 M, top-1 79.3, top-5 94.0',
        base='dualformer_tiny_tl_k400',
        options={'model.backbone.pattern': ('LG', 'LG', 'LL', 'LL')}),
    dualformer_table03_ll_ll_lg_lg=dict(
        table='Table 3',
        row='(LL, LL, LG, LG)',
        paper='236 G for 4 x 1 views, 21.7 M, top-1 78.8, top-5 93.5',
        base='dualformer_tiny_tl_k400',
        options={'model.backbone.pattern': ('LL', 'LL', 'LG', 'LG')}),
    dualformer_table03_ll_ll_ll_ll=dict(
        table='Table 3',
        row='(LL, LL, LL, LL)',
        paper='244 G for 4 x 1 views, 21.7 M, top-1 78.4, top-5 93.3',
        base='dualformer_tiny_tl_k400',
        options={'model.backbone.pattern': ('LL', 'LL', 'LL', 'LL')}),
    # Table 4: window sizes.
    dualformer_table04_16f_window4_7_7=dict(
        table='Table 4',
        row='16 x 4 frames, window (4, 7, 7)',
        paper='104 G for 4 x 1 views, top-1 78.0, top-5 93.2',
        base='dualformer_table04_16f_window8_7_7',
        options={'model.backbone.window_size': (4, 7, 7)}),
    dualformer_table04_16f_window8_7_7=dict(
        table='Table 4',
        row='16 x 4 frames, window (8, 7, 7)',
        paper='112 G for 4 x 1 views, top-1 78.4, top-5 93.3',
        note="The pyramid's kernels are for 32 frames, which gives the "
        "paper's cost.",
        base='dualformer_tiny_tl_k400',
        options={
            'num_frames': 16,
            'model.backbone.num_frames': 32,
            'train_pipeline.1.frame_interval': 4,
            'val_pipeline.1.frame_interval': 4,
            'test_pipeline.1.frame_interval': 4}),
    dualformer_table04_window16_7_7=dict(
        table='Table 4',
        row='32 x 2 frames, window (16, 7, 7)',
        paper='272 G for 4 x 1 views, top-1 79.7, top-5 94.4',
        base='dualformer_tiny_tl_k400',
        options={'model.backbone.window_size': (16, 7, 7)}),
    dualformer_table04_window4_7_7=dict(
        table='Table 4',
        row='32 x 2 frames, window (4, 7, 7)',
        paper='224 G for 4 x 1 views, top-1 79.1, top-5 93.9',
        base='dualformer_tiny_tl_k400',
        options={'model.backbone.window_size': (4, 7, 7)}),
    dualformer_table04_window8_14_14=dict(
        table='Table 4',
        row='32 x 2 frames, window (8, 14, 14)',
        paper='324 G for 4 x 1 views, top-1 79.7, top-5 94.5',
        base='dualformer_tiny_tl_k400',
        options={'model.backbone.window_size': (8, 14, 14)}),
    # Table 5: pooling of the pyramid.
    dualformer_table05_avgpool=dict(
        table='Table 5',
        row='AvgPool',
        paper='59 G a view, 21.8 M, top-1 78.7',
        note='The last stage is pooled to (8, 7, 7) as well, because this '
        "gives the paper's cost.",
        base='dualformer_tiny_tl_k400',
        options={
            'model.backbone.pooling': 'avg',
            'model.backbone.pyramid_sizes': (
                ((8, 7, 7), (4, 4, 4)),
                ((8, 7, 7), (4, 4, 4)),
                ((8, 7, 7),),
                ((8, 7, 7),))}),
    dualformer_table05_conv=dict(
        table='Table 5',
        row='Conv',
        paper='61 G a view, 27.6 M, top-1 79.5',
        note='The last stage is pooled to (8, 7, 7) as well, because this '
        "gives the paper's cost.",
        base='dualformer_tiny_tl_k400',
        options={
            'model.backbone.pooling': 'conv',
            'model.backbone.pyramid_sizes': (
                ((8, 7, 7), (4, 4, 4)),
                ((8, 7, 7), (4, 4, 4)),
                ((8, 7, 7),),
                ((8, 7, 7),))}),
    # Table 6: position encodings.
    dualformer_table06_none=dict(
        table='Table 6',
        row='w.o PEG',
        paper='top-1 78.9',
        base='dualformer_tiny_tl_k400',
        options={'model.backbone.position': 'none'}),
    dualformer_table06_relative=dict(
        table='Table 6',
        row='Swin',
        paper='top-1 79.3',
        base='dualformer_tiny_tl_k400',
        options={'model.backbone.position': 'relative'}),
    # Table 7: pooling in time between stages.
    dualformer_table07_1_1_2=dict(
        table='Table 7',
        row='1, 1, 2',
        paper='216 G for 4 x 1 views, 22.3 M, top-1 79.2, top-5 93.9',
        base='dualformer_tiny_tl_k400',
        options={'model.backbone.temporal_pooling': (1, 1, 2)}),
    dualformer_table07_1_2_1=dict(
        table='Table 7',
        row='1, 2, 1',
        paper='152 G for 4 x 1 views, 21.9 M, top-1 78.8, top-5 93.5',
        note='The pyramids have the default kernels, because this gives the '
        "paper's cost.",
        base='dualformer_tiny_tl_k400',
        options={
            'model.backbone.temporal_pooling': (1, 2, 1),
            'model.backbone.pyramid_sizes': (
                ((8, 7, 7), (4, 4, 4)),
                ((8, 7, 7), (4, 4, 4)),
                ((4, 7, 7),),
                ())}),
    dualformer_table07_2_1_1=dict(
        table='Table 7',
        row='2, 1, 1',
        paper='136 G for 4 x 1 views, 21.8 M, top-1 78.7, top-5 93.5',
        note='The pyramids have the default kernels, because this gives the '
        "paper's cost.",
        base='dualformer_tiny_tl_k400',
        options={
            'model.backbone.temporal_pooling': (2, 1, 1),
            'model.backbone.pyramid_sizes': (
                ((8, 7, 7), (4, 4, 4)),
                ((4, 7, 7), (2, 4, 4)),
                ((4, 7, 7),),
                ())}),
    dualformer_table07_patch4=dict(
        table='Table 7',
        row='1, 1, 1 of patches (4, 4, 4)',
        paper='112 G for 4 x 1 views, 21.8 M, top-1 78.5, top-5 93.3',
        note='The pyramids have the default kernels, because this gives the '
        "paper's cost.",
        base='dualformer_tiny_tl_k400',
        options={
            'model.backbone.patch_size': (4, 4, 4),
            'model.backbone.pyramid_sizes': (
                ((4, 7, 7), (2, 4, 4)),
                ((4, 7, 7), (2, 4, 4)),
                ((4, 7, 7),),
                ())}))
