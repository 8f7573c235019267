# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
import pytest

from mmvidattn.datasets.transforms import FlowTenCrop

SHAPE = 20, 30


def _fields(num=2):
    return [np.random.default_rng(t).integers(
        0, 256, (*SHAPE, 2)).astype(np.uint8) for t in range(num)]


def test_crops_corners_and_center_and_mirrors_them():
    fields = _fields()
    results = FlowTenCrop(16).transform(
        dict(imgs=[field.copy() for field in fields], img_shape=SHAPE))
    crops = results['imgs']
    assert len(crops) == 20 and results['img_shape'] == (16, 16)
    # Steps of a quarter of the remaining space, rounded down: 3 of 14, 1 of 4.
    corners = [(0, 0), (0, 12), (4, 0), (4, 12), (2, 6)]
    for i, (y, x) in enumerate(corners):
        for t, field in enumerate(fields):
            want = field[y:y + 16, x:x + 16]
            np.testing.assert_array_equal(crops[4 * i + t], want)
            mirrored = np.stack([255 - want[:, ::-1, 0], want[:, ::-1, 1]], -1)
            np.testing.assert_array_equal(crops[4 * i + 2 + t], mirrored)


@pytest.mark.parametrize('field, error', [
    (np.zeros((20, 30, 3), np.uint8), r'flow fields \(H, W, 2\)'),
    (np.zeros((15, 30, 2), np.uint8), 'got 30 x 15')])
def test_rejects_images_and_small_fields(field, error):
    with pytest.raises(ValueError, match=error):
        FlowTenCrop(16).transform(dict(imgs=[field], img_shape=None))
    # Fields may have the size of the crops.
    results = FlowTenCrop((20, 16)).transform(dict(
        imgs=[np.zeros((16, 20, 2), np.uint8)], img_shape=(16, 20)))
    assert {x.shape for x in results['imgs']} == {(16, 20, 2)}
