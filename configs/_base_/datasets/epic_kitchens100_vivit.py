# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# EPIC-Kitchens-100, each action cut to a video of its own, as ViViT reads it:
# 32 frames in a row. A line of the annotations is the path, the number of the
# noun, and 300 + the number of the verb.
dataset_type = 'GuardedVideoDataset'
data_root = 'data/epic_kitchens100'
video_dir = 'videos'
ann_file_train = 'epic_kitchens100_train_list_videos.txt'
ann_file_val = 'epic_kitchens100_val_list_videos.txt'
num_nouns, num_verbs = 300, 97
num_classes = num_nouns + num_verbs
metainfo = dict(classes=f'{data_root}/label_map.txt')

file_client_args = dict(io_backend='disk')
train_pipeline = [
    dict(type='DecordInit', **file_client_args),
    dict(type='SampleFrames', clip_len=32, frame_interval=1, num_clips=1),
    dict(type='DecordDecode'),
    # 256 times 0.9 to 1.33.
    dict(type='RandomRescale', scale_range=(230, 340)),
    dict(type='RandomCrop', size=224),
    dict(type='Flip', flip_ratio=0.5),
    dict(type='RandAugment', num_ops=2, magnitude=10),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
val_pipeline = [
    dict(type='DecordInit', **file_client_args),
    dict(
        type='SampleFrames',
        clip_len=32,
        frame_interval=1,
        num_clips=1,
        test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, 256)),
    dict(type='CenterCrop', crop_size=224),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]
test_pipeline = [
    dict(type='DecordInit', **file_client_args),
    dict(
        type='SampleFrames',
        clip_len=32,
        frame_interval=1,
        num_clips=4,
        test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, 256)),
    dict(type='CenterCrop', crop_size=224),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')
]

# 8 on each of 8 GPUs: the released code's batch of 64.
train_dataloader = dict(
    batch_size=8,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(
        type=dataset_type,
        data_root=data_root,
        ann_file=ann_file_train,
        data_prefix=dict(video=video_dir),
        metainfo=metainfo,
        multi_class=True,
        num_classes=num_classes,
        pipeline=train_pipeline))
val_dataloader = dict(
    batch_size=8,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type=dataset_type,
        data_root=data_root,
        ann_file=ann_file_val,
        data_prefix=dict(video=video_dir),
        metainfo=metainfo,
        multi_class=True,
        num_classes=num_classes,
        pipeline=val_pipeline,
        test_mode=True))
test_dataloader = dict(
    batch_size=1,
    num_workers=8,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type=dataset_type,
        data_root=data_root,
        ann_file=ann_file_val,
        data_prefix=dict(video=video_dir),
        metainfo=metainfo,
        multi_class=True,
        num_classes=num_classes,
        pipeline=test_pipeline,
        test_mode=True))

val_evaluator = dict(type='VerbNounAccuracy', num_nouns=num_nouns)
test_evaluator = val_evaluator
