# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Feature extractors of all kinds of networks."""
import sys
import types

import cv2
import numpy as np
import pytest
import torch
from backbones.test_bn_inception import published
from live_fixtures import (
    CLASSES,
    CLIPS,
    FRAMES,
    Pooled,
    make_images,
    write_config,
    write_tsn,
)
from PIL import Image
from torch import nn

import mmvidattn
from mmvidattn.commands.extract_features import load_extractor
from mmvidattn.convert import convert
from mmvidattn.live import FeatureExtractor, OnlineDetector
from mmvidattn.live.live_models import _merge
from mmvidattn.live.networks import (
    FLOWS,
    ImageInput,
    OpticalFlow,
    quantize_flow,
)

IMAGE = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)


@pytest.mark.parametrize('interpolation', ['bilinear', 'bicubic'])
def test_images_are_resized_like_pillow(interpolation):
    resized = Image.fromarray(IMAGE).resize(
        (32, 24), getattr(Image, interpolation.upper()))
    make = ImageInput('frames', [104, 117, 128], 1., 255., 24, 20,
                      interpolation, 'BGR')
    want = np.asarray(resized)[2:22, 6:26, ::-1] - np.float32([104, 117, 128])
    # Pillow's weights have limited precision.
    np.testing.assert_allclose(
        make([IMAGE]), want.transpose(2, 0, 1)[None], atol=1, rtol=0)


def test_values_and_layouts():
    images = [IMAGE + np.uint8(i) for i in range(5)]
    x = ImageInput('clips', (0.1, 0.2, 0.3), (1, 2, 4))(images)
    assert x.shape == (1, 3, 5, 48, 64)
    assert x[0, 2, 1, 5, 7] == pytest.approx(
        (images[1][5, 7, 2] / 255 - 0.3) / 4, abs=1e-6)
    assert ImageInput('frames', 0, 1)(images).shape == (5, 3, 48, 64)
    x = ImageInput('frames', 128, 1, 255)([each[..., :2] for each in images])
    assert x.shape == (1, 10, 48, 64)
    assert x[0, 7, 3, 4] == float(images[3][3, 4, 1]) - 128


def test_features_are_the_output_or_the_input_of_a_layer():
    image = np.full((40, 60, 3), (255, 0, 51), np.uint8)
    model = Pooled().train()
    means = torch.tensor([[2., -2., -1.2]])
    layer = FeatureExtractor(model, input=FRAMES, layer='fc')
    torch.testing.assert_close(layer.features([[image]]), means)
    output = FeatureExtractor(model, input=FRAMES)
    torch.testing.assert_close(output.features([[image], [image]]),
                               model.fc(means).detach().repeat(2, 1))
    assert (layer.width, output.width, output.clip_len) == (3, 2, 1)
    assert not any(module.training for module in model.modules())
    model.unused = nn.Linear(2, 2)
    extractor = FeatureExtractor(model, input=FRAMES, layer='unused')
    with pytest.raises(RuntimeError, match='layer unused did not run'):
        extractor.features([[image]])


def test_features_of_frames_are_averaged():
    images = [np.full((32, 32, 3), v, np.uint8) for v in (0, 51, 102, 255)]
    want = torch.full((1, 3), (0.4 - 0.5) / 0.25)
    for options in FRAMES, CLIPS:
        extractor = FeatureExtractor(
            Pooled(), input=options, clip_len=4, layer='fc')
        torch.testing.assert_close(extractor.features([images]), want)


def test_network_of_a_function_loads_weights(tmp_path, monkeypatch):
    model, path = Pooled(), str(tmp_path / 'pooled.pth')
    torch.save(model.state_dict(), path)
    # The name of this test module is not fixed.
    monkeypatch.setitem(sys.modules, 'mine', types.SimpleNamespace(
        nets=types.SimpleNamespace(make=Pooled)))
    extractor = FeatureExtractor('mine:nets.make', path, input=FRAMES)
    assert torch.equal(extractor.model.fc.weight, model.fc.weight)
    with pytest.raises(FileNotFoundError, match='none.pth'):
        FeatureExtractor(Pooled(), 'none.pth', input=FRAMES)
    # Features must be one row for each image.
    extractor = FeatureExtractor(nn.Conv2d(3, 4, 3), input=FRAMES)
    with pytest.raises(ValueError, match=(
            r'Conv2d gives .* \[1, 4, 30, 40\] .* must be \[1, C\]')):
        extractor.features([[IMAGE]])


def test_recognizers_need_no_weights_of_the_classifier(tmp_path):
    """Weights for other classes, or without a classifier."""
    config = write_tsn(tmp_path / 'tsn.py', False)
    model = mmvidattn.get_model(config)
    state = model.state_dict()
    want = state['backbone.conv1.conv.weight']
    kept = {k: v for k, v in state.items() if 'fc_cls' not in k}
    other = {'cls_head.fc_cls.weight': torch.zeros(9, 512),
             'cls_head.fc_cls.bias': torch.zeros(9)}
    for saved in {**kept, **other}, kept:
        torch.save(dict(state_dict=saved), tmp_path / 'other.pth')
        extractor = FeatureExtractor(str(config), str(tmp_path / 'other.pth'))
        assert torch.equal(extractor.model.backbone.conv1.conv.weight, want)
    del kept['backbone.conv1.conv.weight']
    torch.save(dict(state_dict=kept), tmp_path / 'other.pth')
    with pytest.raises(ValueError, match='missing 1: backbone.conv1.conv'):
        FeatureExtractor(str(config), str(tmp_path / 'other.pth'))


def test_published_flow_network_of_testra(tmp_path):
    """Weights with published names are converted for the config."""
    state = {f'module.base_model.{name}': value
             for name, value in published(10).items()}
    torch.save(dict(state_dict=dict(convert('bn_inception', state))),
               tmp_path / 'flow.pth')
    extractor = FeatureExtractor(
        'tsn_bninception_flow', str(tmp_path / 'flow.pth'), flow='farneback',
        sample_fps=24)
    assert extractor.num_frames == 6
    assert extractor.frame_indices(1, 24, 4).tolist() == [*range(6, 12)]
    clip = extractor.clip(make_images(6))
    sample = extractor._network.prepare(clip)
    assert sample['inputs'].shape == (10, 10, 224, 224)
    # In a mirrored flow field, x has the opposite sign.
    x, mirrored = sample['inputs'][:2].float()
    assert torch.equal(mirrored[0::2].flip(-1), 255 - x[0::2])
    assert torch.equal(mirrored[1::2].flip(-1), x[1::2])
    assert torch.equal(
        extractor.model.backbone.conv2.conv.weight,
        state['module.base_model.conv2_3x3.weight'])
    # Replace the backbone, which has its own tests, by a faster one.
    extractor.model.backbone = nn.Conv2d(10, 1024, 32, 32)
    with torch.no_grad():
        want = extractor.model.backbone(
            sample['inputs'].float() - 128).mean((0, 2, 3))
    torch.testing.assert_close(extractor.features([clip])[0], want)


def test_other_networks_do_not_get_options_of_the_default_network():
    default = dict(config='a', checkpoint='a.pth', cfg_options={'x': 1},
                   layer='y', flow='tvl1', sample_fps=24.)
    assert _merge(default, dict(config='b', checkpoint='b.pth')) == dict(
        config='b', checkpoint='b.pth', flow='tvl1', sample_fps=24.)
    for changes in dict(config='a', checkpoint='b.pth'), dict(flow='dis'):
        assert _merge(default, changes) == default | changes


def test_streaming_matches_extraction(clip, tmp_path, monkeypatch):
    """The sampling rate differs from the frame rate of the source."""
    config = write_config(tmp_path)
    torch.manual_seed(0)
    features = dict(
        config=Pooled(), input=dict(CLIPS, crop=24), clip_len=3,
        sample_fps=24., layer='fc')
    options = {'model.backbone.in_channels': dict(rgb=3)}
    model = mmvidattn.get_model(config, cfg_options=options)
    torch.save(dict(state_dict=model.state_dict()), tmp_path / 'model.pth')
    detector = OnlineDetector(
        config, tmp_path / 'model.pth', clip, dict(rgb=features),
        cfg_options=options)
    rows, extract = [], FeatureExtractor.features_of
    monkeypatch.setattr(
        FeatureExtractor, 'features_of',
        lambda *args: rows.append(extract(*args)) or rows[-1])
    scores = [detection.scores for detection in detector]
    monkeypatch.undo()
    want = load_extractor(dict(
        features, checkpoint=None, device='cpu', flow=None, flow_side=48,
        bound=20., frame_interval=1, cfg_options=None, threads=1, amp=None,
        rate=detector.rate, every=None, batch_size=5))(clip)
    assert np.shape(scores) == (len(want), len(CLASSES))
    np.testing.assert_allclose(torch.cat(rows), want, atol=1e-5, rtol=0)


@pytest.mark.parametrize('method', FLOWS)
def test_flow_of_a_shifted_image(method):
    if method == 'tvl1' and not hasattr(cv2, 'optflow'):
        pytest.skip('OpenCV lacks the contrib modules')
    assert quantize_flow(np.array([[0, -20.], [20, 30]]), 20).tolist() == [
        [128, 0], [255, 255]]
    image = cv2.resize(IMAGE[:16, :16], (64, 64),
                       interpolation=cv2.INTER_CUBIC)
    images = [np.roll(image, 2 * t, axis=1) for t in range(3)]
    flow = OpticalFlow(method, side=48)
    flows = flow(images)
    assert [each.shape for each in flows] == [(48, 48, 2)] * 2
    for each in flows:
        # 2 pixels of 64 to the right are 1.5 of 48.
        inside = each[8:-8, 8:-8] / (255 / 40) - 20
        assert np.median(inside[..., 0]) == pytest.approx(1.5, abs=0.25)
        assert np.median(inside[..., 1]) == pytest.approx(0, abs=0.25)
    if method == 'tvl1':
        # denseflow uses the defaults of OpenCV's CUDA version.
        x = flow._estimator
        assert (x.getTau(), x.getLambda(), x.getTheta(), x.getScalesNumber(),
                x.getWarpingsNumber(), x.getEpsilon(), x.getScaleStep()) == (
                    0.25, 0.15, 0.3, 5, 5, 0.01, 0.8)
        assert x.getOuterIterations() * x.getInnerIterations() == 300
