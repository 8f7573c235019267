# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 6a: rate of MixClip.
table = 'Table 6a'
base = 'testra_rgb_ek100'

rows = dict(
    testra_table06a_mixclip_0=dict(
        row='MixClip rate 0',
        paper='recall of verbs, nouns and actions 25.8, 34.6, 15.5',
        train_pipeline=dict(MixClip=dict(prob=0))),
    testra_table06a_mixclip_2=dict(
        row='MixClip rate 0.2',
        paper='recall of verbs, nouns and actions 26.0, 35.3, 16.0',
        train_pipeline=dict(MixClip=dict(prob=0.2))),
    testra_table06a_mixclip_5=dict(
        row='MixClip rate 0.5',
        paper='recall of verbs, nouns and actions 26.8, 36.2, 17.0',
        train_pipeline=dict(MixClip=dict(prob=0.5))),
    testra_table06a_mixclip_8=dict(
        row='MixClip rate 0.8',
        paper='recall of verbs, nouns and actions 26.2, 35.2, 16.2',
        train_pipeline=dict(MixClip=dict(prob=0.8))))
