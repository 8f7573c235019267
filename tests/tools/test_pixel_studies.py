# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The study of causal networks on streams of frames."""
from dataclasses import replace

import numpy as np
import pytest
import torch

from mmvidattn.apis.models import load_config
from tools.data.online.make_pixels import CUE_FRAMES, patterns
from tools.studies.study import Claim, Training, load
from tools.studies.tasks import pixel_model, pixels, streams
from tools.studies.tasks.start import build
from tools.studies.verdicts import verdict_of

pytestmark = pytest.mark.slow
STUDY = load('causal_stream')


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Three short streams per split, with actions at three distances."""
    result = tmp_path_factory.mktemp('pixels')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pixels, 'RECIPE', replace(pixels.RECIPE, frames=512))
        pixel_model.prepare(result, dict(train=2, val=2, test=2))
    return result


def test_half_rate_shows_the_same_scene():
    fast = pixels.draw(0, 'test', 1, rate=2)
    slow = pixels.at_half_rate(fast)
    assert np.array_equal(slow.features, fast.features[::2])
    for event, other in zip(slow.events, fast.events):
        assert 2 * event.start == other.start and 2 * event.end == other.end
    # A distance is the number of frames from the end of the cue.
    for event in slow.events:
        if event.kind == 'action':
            assert slow.distances[event.start] == event.start - (
                event.cue + CUE_FRAMES)


def test_the_cue_decides():
    drawn = [pixels.at_half_rate(pixels.draw(0, 'test', i, 2))
             for i in range(2)]
    looks = patterns(0, pixels.RECIPE)['cue']
    chance, oracle = (streams.oracle(looks, drawn, known, pixels.BINS)
                      for known in (False, True))
    assert chance['score'] < 30 and oracle['score'] > 95


def test_windows_see_no_other_window(folder):
    config = load_config(STUDY.config_of('window'), STUDY.options('window'))
    model = build(config, None, 0).eval()
    x = torch.randn(1, 3, 32, 16, 16, requires_grad=True)
    y = model.backbone(dict(frames=x))
    assert y.shape == (1, 32, 48)
    gradient, = torch.autograd.grad(y[:, 16:].square().sum(), x)
    assert not gradient[:, :, :16].any() and gradient[:, :, 16:].any()


def test_clips_continue_streams(folder):
    config = load_config(STUDY.config, STUDY.options('causal'))
    model = build(config, None, 0)
    batches = pixel_model._batches(
        model, Training({}, None, folder, 0, 1e-3, 2, 2))
    first, second = next(batches), next(batches)
    for a, b in zip(first['data_samples'], second['data_samples']):
        assert a.video_name == b.video_name
        assert a.work_indices[-1] + 1 == b.work_indices[0]


@pytest.mark.parametrize('row', ['causal', 'window', 'TeSTra on features'])
def test_rows_train(row, folder, monkeypatch):
    monkeypatch.setattr(pixel_model, 'SIZES', dict(train=2, val=2, test=2))
    monkeypatch.setattr(pixel_model, 'TIMED', 16)
    monkeypatch.chdir(folder)
    result = pixel_model.train(Training(
        load_config(STUDY.config_of(row), STUDY.options(row)), None, folder,
        0, 1e-3, 2, 2))
    assert {'score', 'val', 'ms', 'loss'} <= {*result}
    assert result['ms'] > 0 and np.isfinite(result['loss'])
    assert ('same_by_time' in result) == (row == 'causal')
    if row == 'causal':
        assert 0 < result['same_by_time'] <= 100


def test_claim_about_two_figures_of_a_row():
    claim = Claim('a is above b', 'row', 'row', 'ours', metric='a',
                  worse_metric='b')
    scores = dict(row={seed: dict(a=9. + seed / 9, b=1.) for seed in range(4)})
    assert verdict_of(claim, scores).word == 'agrees'
