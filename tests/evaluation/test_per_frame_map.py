# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json

import numpy as np
import pytest
import torch
from feature_set import LENGTHS, options, write_set
from mmaction.registry import METRICS

from mmvidattn.datasets import FeatureStreamDataset
from mmvidattn.evaluation import (
    average_precision,
    calibrated_average_precision,
    stage_masks,
)
from mmvidattn.evaluation.per_frame_map import read_scores


@pytest.fixture(scope='module')
def root(tmp_path_factory):
    return write_set(tmp_path_factory.mktemp('features'))


def build(**kwargs):
    return METRICS.build(dict(type='PerFrameMAP', **kwargs))


def score_of(steps, horizon=0):
    """Return scores of three classes that differ by step and horizon."""
    steps = np.asarray(steps, dtype=float)[..., None]
    return np.sin(steps * [1.1, 1.7, 2.3] + 0.5 * horizon)


def evaluate(samples, **kwargs):
    metric = build(**kwargs)
    metric.dataset_meta = dict(classes=['background', 'one', 'two'])
    metric.process(None, samples)
    result = metric.evaluate(len(samples))
    # numpy floats would print as np.float64(0.5).
    assert {type(x) for x in result.values()} <= {int, float}
    return result


def one_video(scores, targets, mode='dense', **kwargs):
    steps = list(range(len(targets)))
    return dict(
        evaluation_mode=mode, video_name='v', video_length=len(targets),
        horizons=[], score_rows=steps, score_steps=steps,
        num_work=len(steps), anticipation_steps=[], is_first_window=True,
        is_whole_video=False, pred_action=torch.as_tensor(scores),
        gt_action=torch.as_tensor(targets, dtype=torch.float32), **kwargs)


@pytest.mark.parametrize('name', [
    'thumos_AP', 'thumos_AP_scores_rounded_1_decimal(ties)', 'thumos_cAP',
    'tvseries_mcAP', 'perstage_AP', 'perstage_cAP'])
def test_golden(shared_dir, name):
    folder = shared_dir / 'goldens/testra'
    want = json.loads((folder / 'golden_metrics.json').read_text())[name]
    arrays = np.load(folder / 'golden_metrics.npz', allow_pickle=False)
    prefix = dict(th='thumos', tv='tv', pe='stage')[name[:2]]
    scores = arrays[f'{prefix}_scores'].astype(np.float64)
    if 'rounded' in name:
        scores = scores.round(1)
    kind = 'cAP' if 'cAP' in name else 'AP'
    metric = build(ignore_index=None if prefix == 'tv' else 21, metric=kind,
                   per_class=True, per_stage=prefix == 'stage')
    metric.process(None, [one_video(scores, arrays[f'{prefix}_gt'])])
    metric.dataset_meta = None
    result = metric.evaluate(1)
    if prefix == 'stage':
        stages = [value for key, value in result.items() if 'stage' in key]
        np.testing.assert_allclose(stages, [*want.values()], atol=1e-6)
        return
    assert result[f'online/m{kind}_dense'] == pytest.approx(
        want['mean'], abs=1e-6)
    for label, value in want.get('per_class', {}).items():
        assert result[f'online/{kind}_dense_{label[1:]}'] == pytest.approx(
            value, abs=1e-6)


@pytest.mark.parametrize('tokens', [0, 3])
def test_windows_and_whole_videos_agree(root, tokens):
    """Each step counts once, whichever window its score comes from."""
    results = []
    for windows in 'dense', 'videos':
        dataset = FeatureStreamDataset(**options(
            root, windows=windows, test_mode=True, anticipation_steps=tokens))
        samples = []
        for i in range(len(dataset)):
            sample = dataset[i]['data_samples']
            steps = (range(sample.video_length) if windows == 'videos' else
                     sample.work_indices)
            detected = score_of(steps)
            ahead = np.asarray(sample.anticipation_steps)
            foreseen = np.stack(
                [score_of(ahead[..., t], 1 + t) for t in range(tokens)],
                axis=-2) if tokens else np.zeros((0, 3))
            if windows == 'videos':
                pad = max(0, 16 - len(detected))
                detected = np.pad(detected, ((0, pad), (0, 0)), mode='edge')
                if tokens:
                    sample.pred_anticipated_action = torch.tensor(foreseen)
            else:
                detected = np.concatenate([detected, foreseen])
            sample.pred_action = torch.tensor(detected)
            samples.append(sample.to_dict())
        results.append(evaluate(samples, per_class=True))
    assert results[0] == results[1]
    each = naive_precisions(root, score_of)
    assert results[0]['online/mAP_dense'] == pytest.approx(np.mean(each))
    assert results[0]['online/AP_dense_two'] == pytest.approx(each[1])
    ahead = [f'@{s}' for s in ('0.25s', '0.5s', '0.75s', 'mean') if tokens]
    assert {*results[0]} == {'online/AP_dense_one', 'online/AP_dense_two', *(
        f'online/mAP_dense{name}' for name in ['', *ahead])}
    if not tokens:
        return

    def last_token(steps):
        """Score a video's first steps with the first window, as released."""
        rows = score_of(steps, 3)
        rows[:16] = score_of(steps[:16])
        for token in range(2):
            if 16 + token < len(steps):
                rows[16 + token] = score_of(16 + token, 1 + token)
        return rows

    each = naive_precisions(root, last_token)
    assert results[0]['online/mAP_dense@0.75s'] == pytest.approx(np.mean(each))
    assert results[0]['online/mAP_dense@mean'] == pytest.approx(
        np.mean([results[0][f'online/mAP_dense@{s}s']
                 for s in ('0.25', '0.5', '0.75')]))


def naive_precisions(root, score):
    """AP of classes 1 and 2 over all videos, for ``score(steps)``."""
    truth = np.concatenate([
        np.load(root / f'target_perframe/{video}.npy') for video in LENGTHS])
    scores = np.concatenate([
        score(np.arange(n)).astype(np.float32) for n in LENGTHS.values()])
    return [average_precision(truth[:, c] == 1, scores[:, c]) for c in (1, 2)]


@pytest.mark.parametrize('ignored', [0, 1, 2, 3])
def test_ignored_class_leaves_out_its_steps(ignored):
    rng = np.random.default_rng(0)
    targets = np.eye(4)[rng.integers(4, size=40)]
    targets[::7] = 1
    scores = rng.random(targets.shape)
    keep = targets[:, ignored] != 1
    want = np.mean([average_precision(targets[keep, c] == 1, scores[keep, c])
                    for c in range(4) if c != ignored])
    got = evaluate([one_video(scores, targets)], background_index=None,
                   ignore_index=ignored)
    assert got['online/mAP_dense'] == pytest.approx(want)


def test_stream_may_anticipate_before_the_first_window():
    """Only the newest anticipated scores are evaluated."""
    ahead = np.array([[3, 4], [4, 5]])
    targets = torch.arange(12.).reshape(6, 2)
    foreseen = torch.arange(20.).reshape(5, 2, 2)
    sample = dict(one_video(targets, targets), is_whole_video=True,
                  num_work=2, anticipation_steps=ahead,
                  is_first_window=False)
    parts, longer = (read_scores(dict(sample, pred_anticipated_action=x))
                     for x in (foreseen[-2:], foreseen))
    assert parts[1][1].tolist() == [[12, 13], [16, 17]]
    for part, other in zip(parts, longer, strict=True):
        assert all(map(np.array_equal, part, other))


def test_stages_leave_out_ambiguous_steps():
    rng = np.random.default_rng(0)
    targets = np.eye(3)[[0, 1, 1, 1, 1, 0, 0, 2, 2, 0, 1, 1]]
    scores = rng.random(targets.shape)
    results = []
    for high in 0, 9:
        scores[7:9, 1] += high
        results.append(evaluate([one_video(scores, targets)], ignore_index=2,
                                per_stage=True))
    assert results[0] == results[1] and len(results[0]) == 11


def test_rejects_invalid_samples():
    targets = np.eye(3)[[0, 1, 2, 1]]
    video = one_video(targets, targets, mode='non_overlapping')
    assert evaluate([video]) == {'online/mAP_non_overlapping': 1}
    with pytest.raises(ValueError, match='dense, non_overlapping'):
        evaluate([video, one_video(targets, targets)])
    with pytest.raises(ValueError, match=r'v: pred_action must be \(4, 3\)'):
        evaluate([one_video(np.zeros((4, 2)), np.eye(3)[[0, 1, 2, 1]])])
    with pytest.raises(ValueError, match='no step has a class'):
        evaluate([one_video(np.zeros((2, 3)), np.eye(3)[[0, 0]])])
    scores = np.random.default_rng(0).normal(size=(5, 3))
    scores[2, 1] = np.nan
    with pytest.raises(ValueError, match='pred_action of v .*1 of 15'):
        build().process(None, [one_video(scores, np.eye(5, 3))])
    anticipated = one_video(np.zeros((5, 3)), np.eye(5, 3)) | dict(
        is_whole_video=True, anticipation_steps=[[1], [2]], num_work=2,
        pred_anticipated_action=torch.full((2, 1, 3), torch.nan))
    with pytest.raises(ValueError, match='anticipated pred_action of v .*6'):
        build().process(None, [anticipated])


# Average precision


@pytest.mark.parametrize('digits', [9, 1, 0])
def test_matches_the_definition_of_scikit_learn(digits):
    """With fewer digits, there are more ties."""
    rng = np.random.default_rng(0)
    score, positive = rng.normal(size=301).round(digits), rng.random(301) < 0.2
    total = last = 0
    for threshold in sorted(set(score), reverse=True):
        chosen = score >= threshold
        recall = positive[chosen].sum() / positive.sum()
        total += (recall - last) * positive[chosen].mean()
        last = recall
    assert average_precision(positive, score) == pytest.approx(
        total, abs=1e-12)


def test_calibrated_matches_naive():
    rng = np.random.default_rng(1)
    score, positive = rng.normal(size=301), rng.random(301) < 0.1
    weight = (~positive).sum() / positive.sum()
    total = 0
    for s in score[positive]:
        chosen = score >= s
        true = (chosen & positive).sum()
        total += true / (true + (chosen & ~positive).sum() / weight)
    result = calibrated_average_precision(positive, score)
    assert result == pytest.approx(total / positive.sum(), abs=1e-12)


@pytest.mark.parametrize('function',
                         [average_precision, calibrated_average_precision])
def test_perfect_absent_and_invalid_scores(function):
    assert function([1, 1, 0, 0], [4, 3, 2, 1]) == pytest.approx(1)
    assert np.isnan(function([0, 0], [1, 2]))
    with pytest.raises(ValueError, match=r'shape .*got \(2,\) and \(3,\)'):
        function([0, 1], [1, 2, 3])
    with pytest.raises(ValueError, match='score .*1 of 2'):
        function([0, 1], [1, -np.inf])


def test_stages_are_tenths_of_each_action():
    positive = np.zeros(60, bool)
    positive[5:26] = True
    positive[40:43] = True
    masks = stage_masks(positive)
    # 21 steps make ten tenths of two steps; the last step is in no tenth.
    for tenth in range(10):
        steps = np.flatnonzero(masks[tenth])
        assert steps[:2].tolist() == [5 + 2 * tenth, 6 + 2 * tenth]
        # An action of three steps has tenths of one step.
        assert len(steps) == 3 and 40 <= steps[2] < 42
    assert not masks[:, [25, 42]].any()
