# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json

import numpy as np
import pytest
import torch
from mmaction.utils import register_all_modules
from sklearn.metrics import average_precision_score

from mmvidattn.apis.models import load_config
from mmvidattn.evaluation import PerFrameMAP
from tools.studies.study import Training, load
from tools.studies.tasks import online_model, streams
from tools.studies.tasks.start import build

pytestmark = pytest.mark.slow
SIZES = dict(train=2, val=1, test=2)
STUDY = load('testra')
LOOKS = streams.patterns(0)['cue']
# The other rows change only a number.
ROWS = 'TeSTra', 'LSTR', 'no long memory', 'no fusion'


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Streams of all distances."""
    result = tmp_path_factory.mktemp('streams')
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(streams.OPTIONS, 'steps', 2700)
        online_model.prepare(result, SIZES)
    return result


def config_of(row, **changes):
    """Return the config of a row, with memories of 64 steps."""
    options = STUDY.options(row)
    if options.get('model.backbone.long_memory_length'):
        options['model.backbone.long_memory_length'] = 16
        options.update({f'{loader}_dataloader.dataset.long_steps': 64
                        for loader in ('train', 'val', 'test')})
    return load_config(STUDY.config_of(row), {**options, **changes})


def test_features_determine_the_classes():
    # Recover the cue of each step from the features.
    looks = streams.patterns(0)
    cues = looks['cue'] / np.linalg.norm(looks['cue'], axis=1, keepdims=True)
    seen = dict.fromkeys(streams.BINS, 0)
    for index in range(8):
        stream = streams.make_stream(0, 'test', index, noise=0.)
        size = np.linalg.norm(stream.features, axis=1).clip(1e-9)
        fits = stream.features @ cues.T / size[:, None]
        shown = np.where(fits.max(axis=1) > .9999, fits.argmax(axis=1), -1)
        ends = np.flatnonzero((shown[:-1] >= 0)
                              & (shown[:-1] != shown[1:])) + 1
        assert (stream.targets.sum(axis=1) == 1).all()
        for start in np.flatnonzero(
                np.diff(stream.targets.argmax(axis=1), prepend=0)):
            kind, label = divmod(int(stream.targets[start].argmax()) - 1,
                                 streams.NUM_CLASSES)
            if kind != 1:
                assert stream.distances[start] == -1
                assert kind < 0 or shown[start] == label
                continue
            np.testing.assert_allclose(
                stream.features[start], looks['action'][0], rtol=1e-5)
            # The latest cue that has ended.
            end = ends[ends <= start][-1]
            assert shown[end - 1] == label
            assert stream.distances[start] == start - end
            seen[[name for name, (low, high) in streams.BINS.items()
                  if low <= start - end < high][0]] += 1
    assert min(seen.values()) >= 20


def test_limits():
    drawn = [streams.make_stream(0, 'test', i) for i in range(8)]
    chance = streams.oracle(LOOKS, drawn, with_cues=False)
    result = streams.oracle(LOOKS, drawn)
    # A guess among the classes is right one time in four.
    assert chance['score'] == pytest.approx(25)
    assert all(result[name] > chance[name] + 50 for name in result)
    clean = [streams.make_stream(0, 'test', i, noise=0.) for i in range(8)]
    assert all(value == pytest.approx(100)
               for value in streams.oracle(LOOKS, clean).values())
    # With noise that hides all cues, the oracle can hardly do better.
    wrong = [streams.make_stream(0, 'test', i, noise=100.) for i in range(8)]
    assert streams.oracle(LOOKS, wrong)['score'] < 50


def test_streams_are_written_once(folder, monkeypatch):
    monkeypatch.setitem(streams.OPTIONS, 'steps', 2700)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob('*')}
    limits = online_model.prepare(folder, SIZES)
    assert {*limits['oracle']} == {*online_model.METRICS}
    assert {path: path.stat().st_mtime_ns
            for path in folder.rglob('*')} == before
    with pytest.raises(ValueError, match='sizes was'):
        online_model.prepare(folder, {**SIZES, 'train': 3})
    monkeypatch.setitem(streams.OPTIONS, 'cue_steps', 9)
    with pytest.raises(ValueError, match='options was'):
        online_model.prepare(folder, SIZES)


def test_rows_share_windows(folder):
    register_all_modules(init_default_scope=True)
    first, second = (
        next(online_model._batches(config_of(row), folder, 5, 4))
        for row in ('TeSTra', 'no long memory'))
    work = load_config(STUDY.config).memory.work_steps
    for name in 'rgb', 'flow':
        for a, b in zip(first['inputs'][name], second['inputs'][name]):
            torch.testing.assert_close(a[-work:], b, rtol=0, atol=0)
    for a, b in zip(first['data_samples'], second['data_samples']):
        assert torch.equal(a.gt_action, b.gt_action)
    other = next(online_model._batches(config_of('TeSTra'), folder, 6, 4))
    assert not torch.equal(
        other['inputs']['rgb'][0], first['inputs']['rgb'][0])


def test_scores_match_independent_implementations(folder, monkeypatch):
    config = config_of('TeSTra')
    model = build(config, None, 0)
    monkeypatch.setattr(online_model, 'TEST_STRIDE', 1)
    monkeypatch.setitem(streams.OPTIONS, 'steps', 2700)
    got = online_model._test(model, config, folder, 'val', streams.BINS)
    data = online_model._dataset(config, 'test_dataloader', folder, 'val')
    metric = PerFrameMAP(per_class=True)
    metric.dataset_meta = data.metainfo
    with torch.no_grad():
        sample, = model.test_step(online_model.pseudo_collate([data[0]]))
    metric.process({}, [sample.to_dict()])
    each = [value for key, value in metric.compute_metrics(
        metric.results).items() if key.startswith('AP_dense_cue_')]
    assert got['now'] == pytest.approx(100 * np.mean(each))
    events = streams.make_stream(0, 'val', 0).events
    for name, (low, high) in streams.BINS.items():
        steps = np.concatenate([
            range(event.start, event.end) for event in events
            if event.kind == 'action' and low <= event.start - event.cue
            - streams.OPTIONS['cue_steps'] < high])
        each = [
            average_precision_score(want, scores) for want, scores in zip(
                sample.gt_action[steps, 5:].T, sample.pred_action[steps, 5:].T)
            if want.any()]
        assert got[f'bin_{name}'] == pytest.approx(
            100 * np.mean(each), abs=1e-6)
    assert got['score'] == pytest.approx(np.mean(
        [got[f'bin_{name}'] for name in streams.BINS]))
    # Fewer windows have the same scores.
    monkeypatch.setattr(online_model, 'TEST_STRIDE', 7)
    with torch.no_grad():
        thinned = online_model._predict(model, data[0])
    steps = thinned['score_steps']
    assert len(steps) < len(data[0]['data_samples'].gt_action) / 6
    torch.testing.assert_close(
        thinned['pred_action'][steps], sample.pred_action[steps])
    torch.testing.assert_close(
        thinned['pred_anticipated_action'],
        sample.pred_anticipated_action[::7])


@pytest.mark.parametrize('row', ROWS)
def test_rows_train(row, folder, monkeypatch):
    monkeypatch.setattr(online_model, 'TEST_STRIDE', 30)
    result = online_model.train(Training(
        config_of(row), config_of(STUDY.reference), folder, 0, 1e-3, 2, 4))
    assert {*result} == {*online_model.METRICS, 'val', 'loss'}
    assert np.isfinite([*result.values()]).all()
    json.dumps(result)


@pytest.mark.parametrize('row', ['MiniROAD', 'causal transformer'])
def test_causal_networks_score_every_step(folder, row):
    config = load_config(STUDY.config_of(row), STUDY.options(row))
    figures = online_model.train(
        Training(config, None, folder, 0, 1e-3, 1, 2))
    assert 0 < figures['score'] < 100 and 'anticipation' not in figures
    model = build(config, None, 0).eval()
    data = online_model._dataset(config, 'test_dataloader', folder, 'test')
    scores = online_model._predict(model, data[0])['pred_action']
    assert (scores.sum(dim=1) > 0).all()
