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


META = dict(classes=['background', 'one', 'two'])


def score_of(steps, horizon=0):
    """Return scores of three classes that differ by step and horizon."""
    step, ahead = (np.asarray(x, float)[..., None] for x in (steps, horizon))
    return np.sin(step * [1.1, 1.7, 2.3] + 0.5 * ahead)


def evaluate(samples, meta=META, **kwargs):
    metric = METRICS.build(dict(type='PerFrameMAP', **kwargs))
    metric.dataset_meta = meta
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
    kind = 'cAP' if 'cAP' in name else 'AP'
    result = evaluate(
        [one_video(scores.round(1) if 'rounded' in name else scores,
                   arrays[f'{prefix}_gt'])], None, metric=kind,
        ignore_index=None if prefix == 'tv' else 21, per_class=True,
        per_stage=prefix == 'stage')
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
        samples = [dataset[i]['data_samples'] for i in range(len(dataset))]
        for sample in samples:
            foreseen = score_of(sample.anticipation_steps,
                                1 + np.arange(tokens))
            if windows == 'dense':
                scores = np.r_[score_of(sample.work_indices), foreseen]
            else:
                # Short videos are padded.
                scores = score_of(range(max(sample.video_length, 16)))
                if tokens:
                    sample.pred_anticipated_action = torch.tensor(foreseen)
            sample.pred_action = torch.tensor(scores)
        results.append(evaluate([sample.to_dict() for sample in samples],
                                per_class=True))
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

    by_token = [results[0][f'online/mAP_dense@{s}s']
                for s in ('0.25', '0.5', '0.75')]
    assert by_token[2] == pytest.approx(
        np.mean(naive_precisions(root, last_token)))
    assert results[0]['online/mAP_dense@mean'] == pytest.approx(
        np.mean(by_token))


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


STAGES = dict(ignore_index=2, per_stage=True)


def test_stages_leave_out_ambiguous_steps():
    rng = np.random.default_rng(0)
    targets = np.eye(3)[[0, 1, 1, 1, 1, 0, 0, 2, 2, 0, 1, 1]]
    scores = rng.random(targets.shape)
    first = evaluate([one_video(scores, targets)], **STAGES)
    scores[7:9, 1] += 9
    assert first == evaluate([one_video(scores, targets)], **STAGES)
    assert len(first) == 11


def test_rejects_invalid_samples():
    targets = np.eye(3)[[0, 1, 2, 1]]
    video = one_video(targets, targets, mode='non_overlapping')
    assert evaluate([video]) == {'online/mAP_non_overlapping': 1}
    scores = np.zeros((4, 3))
    scores[2, 1] = np.nan
    anticipated = one_video(targets, targets) | dict(
        is_whole_video=True, anticipation_steps=[[1], [2]], num_work=2,
        pred_anticipated_action=torch.full((2, 1, 3), torch.nan))
    for samples, error in (
            ([video, one_video(targets, targets)], 'dense, non_overlapping'),
            ([one_video(targets[:, :2], targets)],
             r'v: pred_action must be \(4, 3\)'),
            ([one_video(targets, targets[[0] * 4])], 'no step has a class'),
            ([one_video(scores, targets)], 'pred_action of v .*1 of 12'),
            ([anticipated], 'anticipated pred_action of v .*6')):
        with pytest.raises(ValueError, match=error):
            evaluate(samples)


# Average precision

BOTH = pytest.mark.parametrize(
    'function', [average_precision, calibrated_average_precision])


@BOTH
@pytest.mark.parametrize('digits', [9, 1, 0])
def test_matches_the_definition(function, digits):
    """With fewer digits, there are more ties."""
    rng = np.random.default_rng(0)
    score, positive = rng.normal(size=301).round(digits), rng.random(301) < 0.2
    weight, ranked, total = 1, score, 0
    if function is calibrated_average_precision:
        weight = (~positive).sum() / positive.sum()
        # Equal scores are ranked in temporal order.
        ranked = -np.argsort(np.argsort(-score, kind='stable'))
    for s in ranked[positive]:
        true, false = (sum(ranked[one] >= s) for one in (positive, ~positive))
        total += true / (true + false / weight)
    assert function(positive, score) == pytest.approx(
        total / positive.sum(), abs=1e-12)


@BOTH
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
