# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
from online.networks import random_detector, video_of

from mmvidattn.online import StreamSession, stream_videos


def test_videos_may_differ_in_length():
    model = random_detector('miniroad')
    lengths = 3, 300, 1, 299, 300
    videos = [video_of(model, length, seed=i)
              for i, length in enumerate(lengths)]
    result, _ = stream_videos(
        StreamSession(model), videos, [[length - 1] for length in lengths])
    for video, got in zip(videos, result, strict=True):
        want = StreamSession(model).push(video)['action'][-1:]
        torch.testing.assert_close(got['action'], want)
