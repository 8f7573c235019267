# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import cv2
import numpy as np
import pytest

from mmvidattn.live import FeatureExtractor
from mmvidattn.live.optical_flow import FLOWS, OpticalFlow, quantize_flow


def test_flow_is_quantized_to_bytes():
    flow = np.array([[[0, -20.], [20, 30]]])
    assert quantize_flow(flow, 20).tolist() == [[[128, 0], [255, 255]]]


@pytest.mark.parametrize('method', FLOWS)
def test_flow_of_a_shifted_image(method):
    if method == 'tvl1' and not hasattr(cv2, 'optflow'):
        pytest.skip('OpenCV lacks the contrib modules')
    noise = np.random.default_rng(0).integers(
        0, 255, (16, 16, 3)).astype(np.uint8)
    image = cv2.resize(noise, (64, 64), interpolation=cv2.INTER_CUBIC)
    images = [np.roll(image, 2 * t, axis=1) for t in range(3)]
    flows = OpticalFlow(method, side=48)(images)
    assert [flow.shape for flow in flows] == [(48, 48, 2)] * 2
    for flow in flows:
        # 2 pixels of 64 to the right are 1.5 of 48.
        inside = flow[8:-8, 8:-8] / (255 / 40) - 20
        assert np.median(inside[..., 0]) == pytest.approx(1.5, abs=0.25)
        assert np.median(inside[..., 1]) == pytest.approx(0, abs=0.25)


@pytest.mark.skipif(not hasattr(cv2, 'optflow'),
                    reason='OpenCV lacks the contrib modules')
def test_tvl1_has_the_settings_of_denseflow():
    """denseflow uses the defaults of OpenCV's CUDA version."""
    result = OpticalFlow('tvl1')._estimator
    assert (result.getTau(), result.getLambda(), result.getTheta(),
            result.getScalesNumber(), result.getWarpingsNumber(),
            result.getEpsilon(), result.getScaleStep(), result.getGamma()
            ) == (0.25, 0.15, 0.3, 5, 5, 0.01, 0.8, 0)
    assert result.getOuterIterations() * result.getInnerIterations() == 300


@pytest.mark.parametrize('kwargs, error', [
    (dict(flow='raft'), "flow must be .*'farneback'.* got 'raft'"),
    (dict(flow_side=0), 'flow_side must be a positive number, got 0'),
    (dict(bound=-1.), 'bound must be a positive number, got -1.0'),
])
def test_rejects_arguments(kwargs, error):
    with pytest.raises(ValueError, match=error):
        FeatureExtractor('tsn_bninception_flow', **kwargs)


def test_missing_contrib_is_named(monkeypatch):
    monkeypatch.delattr(cv2, 'optflow', raising=False)
    with pytest.raises(ValueError, match='pip install opencv-contrib-python'):
        OpticalFlow('tvl1')
