# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
from pathlib import Path

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


def test_golden(shared_dir):
    folder = shared_dir / 'goldens/testra'
    values = json.loads((folder / 'golden_metrics.json').read_text())['ek']
    arrays = np.load(folder / 'golden_metrics.npz', allow_pickle=False)
    actions = [*zip(arrays['ek_actions_verb'].tolist(),
                    arrays['ek_actions_noun'].tolist())]
    ids = np.arange(len(arrays['ek_labels']))
    subsets = {
        name: ids[arrays[f'ek_{name}']].tolist()
        for name in ('unseen', 'tail')}
    scores = arrays['ek_scores'][:, 1]

    def named(first, labels, rows):
        return [sample(i, dict(action=label, **dict(
            zip(('verb', 'noun'), actions[label]))), rows,
            action=scores[i % len(scores)])
            for i, label in enumerate(labels.tolist(), first)]

    samples = named(0, arrays['ek_labels'], [0])
    # Segments that start too early have zero scores.
    zeros = named(len(samples), arrays['ek_discarded_labels'], [])
    for given, names in ((samples, ['overall', 'unseen', 'tail']),
                         (samples + zeros, ['with_20_zero_rows'])):
        got = evaluate(given, actions=actions, subsets=subsets)
        for part in 'action', 'verb', 'noun':
            for name in names:
                key = f'online/{part}_top5_recall_testra' + (
                    f'_{name}' if name in subsets else '')
                want = values[part].get(f'recall5_{name}', {1: got[key]})
                assert got[key] == pytest.approx(want[1], abs=1e-6)


SIZES = dict(action=12, verb=7, noun=8)


@pytest.fixture
def samples():
    rng = np.random.default_rng(0)
    return [sample(
        i, {part: int(rng.integers(n)) for part, n in SIZES.items()}, [0],
        mode='strict', **{part: rng.normal(size=n) for part, n in
                          SIZES.items()}) for i in range(60)]


def naive_recall(samples, part, k=5):
    hits = {}
    for each in samples:
        scores = each[f'pred_{part}'][0, 1:].tolist()
        label = each['segment_labels'][part]
        better = sum(score > scores[label] for score in scores)
        hits.setdefault(label, []).append(better < k)
    return sum(sum(h) / len(h) for h in hits.values()) / len(hits)


@pytest.mark.parametrize('k', [1, 5])
def test_recall_matches_naive(samples, k):
    """Classifiers of verbs and nouns take precedence over ``actions``."""
    assert evaluate(samples, actions=[(0, 0)] * 12, k=k) == {
        f'online/{part}_top{k}_recall_strict': pytest.approx(
            naive_recall(samples, part, k)) for part in SIZES}


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
def test_rejects_invalid_options(kwargs, error):
    Path('actions.csv').write_text('id,verb\nx,1\n')
    Path('verbs.csv').write_text('verb\n2\nx\n')
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
        **{part: rng.normal(size=11) for part in SIZES})
        for i, (identity, verb) in enumerate(SEGMENTS)]
    result = evaluate(samples, subsets={name: str(path)}, k=4)
    # The first result selects the best checkpoint.
    assert [*result][0] == 'online/action_top4_recall_testra'
    stem, _, last = name.rpartition('_')
    chosen = [samples[i] for i in inside]
    assert {key: value for key, value in result.items()
            if not key.endswith('testra')} == {
        f'online/{part}_top4_recall_testra_{stem or name}': pytest.approx(
            naive_recall(chosen, part, 4))
        for part in ([last] if stem else SIZES)}


def test_warns_of_empty_subset(samples, monkeypatch):
    logged = []
    monkeypatch.setattr('mmvidattn.evaluation.segment_scores.print_log',
                        lambda text, *args: logged.append(text))
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


def test_rows_of_a_stream_and_of_windows():
    """In a stream, row 0 is the detection, and then come the tokens."""
    # Four segments of a video, and two tokens; class 0 is the background.
    scores = dict(
        video_name='v', pred_action=torch.arange(12.).reshape(4, 3),
        pred_anticipated_action=torch.arange(24.).reshape(4, 2, 3))
    result = read_segment_scores(dict(
        scores, is_whole_video=True, segment_id=[1, 2, 'c', 4],
        segment_labels=[dict(action=0), {}, {}, {}],
        score_rows=[[0], [1], [2], []]))
    assert [(one.id, one.seen, one.labels, one.scores['action'].tolist())
            for one in result] == [
        ('1', True, dict(action=0), [1, 2]), ('2', True, {}, [7, 8]),
        ('c', True, {}, [16, 17]), ('4', False, {}, [0, 0])]
    for rows, want in ([2], [7, 8]), ([3], [10, 11]), ([], [0, 0]):
        one, = read_segment_scores(dict(
            scores, is_whole_video=False, segment_id=1, segment_labels={},
            score_rows=rows))
        assert (one.seen, one.scores['action'].tolist()) == (bool(rows), want)
