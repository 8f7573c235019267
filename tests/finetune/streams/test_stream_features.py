# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import cv2
import numpy as np
import pytest
import torch

from mmvidattn.datasets.annotations.video_segment import VideoSegment
from mmvidattn.finetune.streams.plan import StreamPlan
from mmvidattn.finetune.streams.prepare import stream_name, write_features
from mmvidattn.live import FeatureExtractor


@pytest.fixture
def plan(tmp_path):
    """A video of two seconds for training, and one for validation."""
    for name in 'a/x.mp4', 'y.avi':
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        writer = cv2.VideoWriter(
            str(path), cv2.VideoWriter_fourcc(*'mp4v'), 8, (32, 32))
        for i in range(16):
            writer.write(np.full((32, 32, 3), 16 * i, np.uint8))
        writer.release()
    return StreamPlan(
        tmp_path, dict(train=['a/x.mp4'], val=['y.avi']),
        [VideoSegment('', 'a/x.mp4', .5, 1.25, dict(action='k'), '')],
        ['background', 'k'], {})


@pytest.fixture
def extractor():
    """Network whose feature is the mean gray level."""
    network = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1),
                                  torch.nn.Flatten())
    return FeatureExtractor(network, input=dict(
        takes='frames', mean=[0.] * 3, std=[1.] * 3, value_range=255,
        resize=32))


def test_writes_features_targets_and_lists(plan, extractor, tmp_path):
    out = tmp_path / 'out'
    write_features(plan, extractor, out)
    features = np.load(out / 'rgb/a_x.npy')
    assert features.shape == (8, 3)
    # The clip of a step ends with its last frame: frame 1 of two.
    assert features.mean(1) == pytest.approx(
        16 * (2 * np.arange(8) + 1), abs=4)
    targets = np.load(out / 'target_perframe/a_x.npy')
    assert targets[:, 1].tolist() == [0, 0, 1, 1, 1, 0, 0, 0]
    assert np.load(out / 'target_perframe/y.npy')[:, 0].all()
    assert (out / 'train_features.txt').read_text() == 'a_x\n'
    # Existing features are kept.
    np.save(out / 'rgb/y.npy', np.zeros((8, 3)))
    write_features(plan, extractor, out)
    assert not np.load(out / 'rgb/y.npy').any()


def test_names_must_differ(plan, extractor, tmp_path):
    assert stream_name('a/b/c.mp4') == 'a_b_c'
    plan = plan._replace(splits=dict(train=['a/x.mp4', 'a_x.mp4']))
    with pytest.raises(ValueError, match='a/x.mp4 and a_x.mp4 would have the'):
        write_features(plan, extractor, tmp_path / 'out')
