# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 9, XViT, baseline. Paper: top-1 66.20.
_base_ = '../../xvit_ssv2.py'
