# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 4: crop size.
table = 'Table 4'
base = 'vivit_l16x2_joint_k400'

rows = dict(
    vivit_table04_crop288=dict(
        row='crops of 288',
        paper='top-1 80.7, 2919 G',
        note='The short side is 329, in proportion to 256 for crops of 224; '
        'the paper does not say.',
        img_size=288),
    vivit_table04_crop320=dict(
        row='crops of 320',
        paper='top-1 81.0, 3992 G',
        note='The short side is 366, in proportion to 256 for crops of 224; '
        'the paper does not say.',
        img_size=320))
