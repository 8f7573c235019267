# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# ViViT-L/16x2, Model 2, on Something-Something v2, from a Kinetics or ImageNet
# model. The paper, Table 5e: top-1 65.9, top-5 89.9. Unlike the released
# recipe it does not flip clips, because many classes name a direction.
_base_ = 'vivit_l16x2_fact_encoder_ssv2_released.py'

from mmvidattn.utils.config import derive

derive(_base_, train_pipeline=dict(Flip=None))
