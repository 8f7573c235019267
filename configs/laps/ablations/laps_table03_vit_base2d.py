# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 3, Base2D on ViT. Paper: top-1 76.41, 141.0 G, 86.1 M. Table 4 has it
# as "ViT (Video)": top-1 76.00, top-5 92.50, 134.7 G, 85.9 M.
_base_ = '../../laps_vit_k400.py'

model = dict(backbone=dict(attention='2d', shift='none'))
