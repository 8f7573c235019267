# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Frames of a stream: the short side is 224 pixels, and the middle is cropped.
# Training reads the same pixels, because the clips of a video continue each
# other.
img_size = 224

train_pipeline = val_pipeline = test_pipeline = [
    dict(type='DecordInit'),
    dict(type='StreamSampleFrames'),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, img_size)),
    dict(type='CenterCrop', crop_size=img_size),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackStreamInputs')
]
