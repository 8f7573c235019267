# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json

import numpy as np
import pytest
import torch
from mmaction.registry import METRICS

from mmvidattn.evaluation import mean_top_k_recall
from mmvidattn.evaluation.segment_scores import read_segment_scores


def sample(segment, labels, rows, mode='testra', **scores):
    scores = {
        f'pred_{part}': torch.tensor(np.insert(row, 0, 99.)[None])
        for part, row in scores.items()}
    return dict(
        evaluation_mode=mode, video_name='v', segment_id=segment,
        segment_labels=labels, score_rows=rows, **scores)


def build(**kwargs):
    return METRICS.build(dict(type='MeanTopKRecall', **kwargs))


def evaluate(samples, **kwargs):
    metric = build(**kwargs)
    metric.process(None, samples)
    return metric.evaluate(len(samples))


def test_golden(shared_dir, horizon=1):
    folder = shared_dir / 'goldens/testra'
    values = json.loads((folder / 'golden_metrics.json').read_text())['ek']
    arrays = np.load(folder / 'golden_metrics.npz', allow_pickle=False)
    actions = [*zip(arrays['ek_actions_verb'].tolist(),
                    arrays['ek_actions_noun'].tolist())]
    ids = np.arange(len(arrays['ek_labels']))
    subsets = {
        name: ids[arrays[f'ek_{name}']].tolist()
        for name in ('unseen', 'tail')}

    def named(i, label, rows, scores):
        verb, noun = actions[label]
        return sample(int(i), dict(action=label, verb=verb, noun=noun), rows,
                      action=scores)

    samples = [named(i, label, [0], arrays['ek_scores'][i, horizon])
               for i, label in zip(ids, arrays['ek_labels'].tolist())]
    got = evaluate(samples, actions=actions, subsets=subsets)
    for part in 'action', 'verb', 'noun':
        name = f'online/{part}_top5_recall_testra'
        for subset in 'overall', 'unseen', 'tail':
            key = name if subset == 'overall' else f'{name}_{subset}'
            assert got[key] == pytest.approx(
                values[part][f'recall5_{subset}'][horizon], abs=1e-6)
    # Segments that start too early have zero scores.
    zeros = [named(1000 + i, label, [], arrays['ek_scores'][0, 0])
             for i, label in enumerate(arrays['ek_discarded_labels'].tolist())]
    got = evaluate([*samples, *zeros], actions=actions)
    for part in 'action', 'verb', 'noun':
        expected = values[part].get('recall5_with_20_zero_rows')
        if expected:
            assert got[f'online/{part}_top5_recall_testra'] == \
                pytest.approx(expected[horizon], abs=1e-6)


@pytest.fixture
def samples():
    rng = np.random.default_rng(0)
    return [
        sample(
            i, dict(action=int(rng.integers(12)), verb=int(rng.integers(7)),
                    noun=int(rng.integers(8))), [0], mode='strict',
            action=rng.normal(size=12), verb=rng.normal(size=7),
            noun=rng.normal(size=8)) for i in range(60)]


def naive_recall(samples, part, k=5):
    hits = {}
    for each in samples:
        scores = each[f'pred_{part}'][0, 1:].tolist()
        label = each['segment_labels'][part]
        better = sum(score > scores[label] for score in scores)
        hits.setdefault(label, []).append(better < k)
    return sum(sum(h) / len(h) for h in hits.values()) / len(hits)


@pytest.mark.parametrize('k', [1, 5])
def test_recall_matches_naive(samples, tmp_path, k):
    """Classifiers of verbs and nouns take precedence over ``actions``."""
    (tmp_path / 'ids.csv').write_text('id\n3\n4\n40\n')
    result = evaluate(samples, actions=[(0, 0)] * 12, k=k,
                      subsets=dict(tail_verb=str(tmp_path / 'ids.csv')))
    assert result == {
        **{f'online/{part}_top{k}_recall_strict': pytest.approx(
            naive_recall(samples, part, k))
           for part in ('action', 'verb', 'noun')},
        f'online/verb_top{k}_recall_strict_tail': pytest.approx(
            naive_recall([samples[i] for i in (3, 4, 40)], 'verb', k))}


def test_segment_without_steps_has_zero_scores():
    # With sums of a uniform softmax the first verb would win.
    actions = [(0, 0)] * 5 + [(i, i) for i in range(7)]
    for label, recall in ((0, 0), (1, 0), (2, 1), (6, 1)):
        result = evaluate([
            sample(0, dict(action=label, verb=label, noun=label), [],
                   action=np.arange(12.))], actions=actions)
        assert result['online/verb_top5_recall_testra'] == recall
        assert result['online/noun_top5_recall_testra'] == recall


@pytest.mark.parametrize('kwargs, error', [
    (dict(actions='none.csv'), 'none.csv'),
    (dict(actions='actions.csv'), 'line 2: expected number 0, verb'),
    (dict(subsets=dict(unseen='none.csv')), 'none.csv does not exist'),
    (dict(subsets=dict(tail_verb='verbs.csv')), "line 3: 'x' is not a .*"),
    (dict(subsets=dict(unseen='actions.csv')), "line 1: 'id,verb' is not a .*"
     'id'), (dict(k=0), 'k must .*got 0')])
def test_rejects_invalid_options(tmp_path, monkeypatch, kwargs, error):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'actions.csv').write_text('id,verb\nx,1\n')
    (tmp_path / 'verbs.csv').write_text('verb\n2\nx\n')
    with pytest.raises(ValueError, match=error):
        build(**kwargs)


def test_rejects_invalid_samples(samples):
    metric = build()
    with pytest.raises(ValueError, match='segment_labels'):
        metric.process(None, [{**samples[0], 'segment_labels': None}])
    scores = np.array([0., np.nan])
    labels = dict(action=1, verb=1, noun=1)
    for part in labels:
        with pytest.raises(ValueError, match=f'pred_{part} of segment s7 '):
            metric.process(None, [sample('s7', labels, [0], **{part: scores})])
    # A segment without steps has zero scores, whatever the tensor holds.
    metric.process(None, [sample('s7', labels, [], action=scores)])
    metric.process(None, [samples[0]])
    with pytest.raises(ValueError, match='protocol, got strict, testra'):
        metric.evaluate(2)
    with pytest.raises(ValueError, match=r'got \(2, 3\) and \(1,\)'):
        mean_top_k_recall(np.zeros((2, 3)), [0])
    with pytest.raises(ValueError, match='scores .*1 of 6'):
        mean_top_k_recall([[0, 0, -np.inf], [0, 0, 0]], [0, 1])


# Ids and verbs.
SEGMENTS = [('P01_11_0', 0), ('P01_11_1', 1), ('P01_11_10', 0),
            ('P01_11_100', 2), ('P18_01_0', 2), ('P18_01_10', 10)]


@pytest.mark.parametrize('name, text, inside', [
    ('unseen', 'P18_01_0\nP18_01_10\n', [4, 5]),
    ('unseen', 'participant_id\nP18\n', [4, 5]), ('unseen', 'P18\n', [4, 5]),
    ('video', 'P01_11\n', [0, 1, 2, 3]),
    ('some', 'narration_id\nP01_11_10\n', [2]),
    ('tail_verb', 'verb\n2\n10\n', [3, 4, 5])])
def test_subset_lists(tmp_path, name, text, inside):
    path = tmp_path / 'list.csv'
    path.write_text(text)
    rng = np.random.default_rng(0)
    samples = [sample(
        identity, dict(action=i, verb=verb, noun=i), [0],
        **{part: rng.normal(size=11) for part in ('action', 'verb', 'noun')})
        for i, (identity, verb) in enumerate(SEGMENTS)]
    result = evaluate(samples, subsets={name: str(path)}, k=4)
    assert list(result)[0] == 'online/action_top4_recall_testra'
    stem, _, last = name.rpartition('_')
    parts = [last] if stem else ['action', 'verb', 'noun']
    assert sum(f'_{stem or name}' in key for key in result) == len(parts)
    for part in parts:
        assert result[f'online/{part}_top4_recall_testra_{stem or name}'] == \
            pytest.approx(naive_recall([samples[i] for i in inside], part, 4))


def test_warns_of_empty_subset(samples, monkeypatch):
    logged = []
    monkeypatch.setattr('mmvidattn.evaluation.segment_scores.print_log',
                        lambda *args: logged.append(args[0]))
    result = evaluate(samples, subsets=dict(unseen=['P18']))
    assert np.isnan(result['online/verb_top5_recall_strict_unseen'])
    assert len(logged) == 1 and 'unseen matches 0 of 60' in logged[0]
    # Segments without labels have no recall.
    for each in samples:
        each['segment_labels'] = {}
    assert evaluate(samples, subsets=dict(unseen=['1'])) == {}


def test_derives_actions_from_verbs_and_nouns(samples, tmp_path):
    """EPIC's official lists lack actions; unknown pairs count as misses."""
    table = [(0, 2), (3, 4), (1, 1)]
    path = tmp_path / 'actions.csv'
    path.write_text('id,verb,noun,action\n' + ''.join(
        f'{i},{verb},{noun},x\n' for i, (verb, noun) in enumerate(table)))
    for i, each in enumerate(samples[:6]):
        each['segment_labels'] = dict(
            zip(('verb', 'noun'), [*table, (5, 5), (5, 6), (5, 5)][i]))
        each['pred_action'] = torch.tensor([[0., 3, 2, 1]])
    # There are three classes in the table and two unknown ones; two are hits.
    for actions in table, str(path):
        assert evaluate(samples[:6], k=2, actions=actions)[
            'online/action_top2_recall_strict'] == pytest.approx(2 / 5)
    with pytest.raises(ValueError, match='segment 0 has no action .*actions'):
        evaluate(samples[:6], k=2)


def test_last_classes_win_ties():
    zeros = np.zeros((12, 12))
    hits = [mean_top_k_recall(zeros[:1], np.array([c])) for c in range(12)]
    assert hits == [0] * 7 + [1] * 5


SCORES = {
    # Four segments of a video; class 0 is the background.
    'pred_action': torch.tensor(
        [[9., 1., 2.], [9., 3., 4.], [9., 5., 6.], [9., 7., 8.]]),
    # Two anticipation tokens.
    'pred_anticipated_action': torch.arange(24.).reshape(4, 2, 3)}


def test_rows_of_a_stream_and_of_windows():
    """In a stream, row 0 is the detection, and then come the tokens."""
    result = read_segment_scores(dict(
        SCORES, is_whole_video=True, video_name='v',
        segment_id=[1, 2, 'c', 4],
        segment_labels=[dict(action=0), {}, {}, {}],
        score_rows=[[0], [1], [2], []]))
    assert [segment.id for segment in result] == ['1', '2', 'c', '4']
    assert [segment.seen for segment in result] == [True, True, True, False]
    assert result[0].labels == dict(action=0)
    assert [segment.scores['action'].tolist() for segment in result] == [
        [1, 2], [7, 8], [16, 17], [0, 0]]
    for rows, scores in ([2], [5, 6]), ([3], [7, 8]), ([], [0, 0]):
        one, = read_segment_scores(dict(
            SCORES, is_whole_video=False, video_name='v', segment_id=1,
            segment_labels={}, score_rows=rows))
        assert one.seen == bool(rows)
        assert one.scores['action'].tolist() == scores
