# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# The released recipe of ViViT-L/16x2, Model 2, on Kinetics-400: 24 temporal
# blocks, 606.8 M parameters. vivit_l16x2_fact_encoder_k400.py has the paper's
# four temporal blocks.
_base_ = 'vivit_l16x2_fact_encoder_k400.py'

model = dict(backbone=dict(num_temporal_layers=24))
