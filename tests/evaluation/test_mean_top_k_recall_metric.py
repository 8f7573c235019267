# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json

import numpy as np
import pytest
import torch
from mmaction.registry import METRICS

from mmvidattn.evaluation import mean_top_k_recall


def sample(segment, labels, rows, mode='testra', **scores):
    scores = {
        f'pred_{part}': torch.tensor(np.insert(row, 0, 99.)[None])
        for part, row in scores.items()
    }
    return dict(
        evaluation_mode=mode, video_name='v', segment_id=segment,
        segment_labels=labels, score_rows=rows, **scores)


def evaluate(metric, samples):
    metric.process(None, samples)
    return metric.evaluate(len(samples))


@pytest.mark.parametrize('horizon', [0, 1])
def test_golden(shared_dir, horizon):
    folder = shared_dir / 'goldens/testra'
    values = json.loads((folder / 'golden_metrics.json').read_text())['ek']
    arrays = np.load(folder / 'golden_metrics.npz', allow_pickle=False)
    actions = [*zip(arrays['ek_actions_verb'].tolist(),
                    arrays['ek_actions_noun'].tolist())]
    ids = np.arange(len(arrays['ek_labels']))
    subsets = {
        name: ids[arrays[f'ek_{name}']].tolist()
        for name in ('unseen', 'tail')
    }
    metric = METRICS.build(
        dict(type='MeanTopKRecall', actions=actions, subsets=subsets))

    def samples():
        for i, label in zip(ids, arrays['ek_labels'].tolist()):
            verb, noun = actions[label]
            yield sample(
                int(i), dict(action=label, verb=verb, noun=noun), [0],
                action=arrays['ek_scores'][i, horizon])

    found = evaluate(metric, [*samples()])
    for part in 'action', 'verb', 'noun':
        name = f'online/{part}_top5_recall_testra'
        for subset in 'overall', 'unseen', 'tail':
            key = name if subset == 'overall' else f'{name}_{subset}'
            assert found[key] == pytest.approx(
                values[part][f'recall5_{subset}'][horizon], abs=1e-6)
    # Segments that are too early have scores of zero.
    zeros = []
    for i, label in enumerate(arrays['ek_discarded_labels'].tolist()):
        verb, noun = actions[label]
        zeros.append(sample(
            1000 + i, dict(action=label, verb=verb, noun=noun), [],
            action=arrays['ek_scores'][0, 0]))
    found = evaluate(metric, [*samples(), *zeros])
    for part in 'action', 'verb', 'noun':
        wanted = values[part].get('recall5_with_20_zero_rows')
        if wanted:
            assert found[f'online/{part}_top5_recall_testra'] == \
                pytest.approx(wanted[horizon], abs=1e-6)


@pytest.fixture
def samples():
    rng = np.random.default_rng(0)
    return [
        sample(
            i, dict(action=int(rng.integers(12)), verb=int(rng.integers(7)),
                    noun=int(rng.integers(8))), [0], mode='strict',
            action=rng.normal(size=12), verb=rng.normal(size=7),
            noun=rng.normal(size=8)) for i in range(60)
    ]


def test_classifiers_of_verbs_and_nouns_win(samples, tmp_path):
    (tmp_path / 'ids.csv').write_text('id\n3\n4\n40\n')
    metric = METRICS.build(
        dict(type='MeanTopKRecall', actions=[(0, 0)] * 12,
             subsets=dict(tail_verb=str(tmp_path / 'ids.csv'))))
    found = evaluate(metric, samples)
    assert set(found) == {
        'online/action_top5_recall_strict', 'online/verb_top5_recall_strict',
        'online/noun_top5_recall_strict',
        'online/verb_top5_recall_strict_tail'}
    scores = np.stack([s['pred_verb'][0, 1:].numpy() for s in samples])
    labels = np.array([s['segment_labels']['verb'] for s in samples])
    assert found['online/verb_top5_recall_strict'] == pytest.approx(
        mean_top_k_recall(scores, labels))
    assert found['online/verb_top5_recall_strict_tail'] == pytest.approx(
        mean_top_k_recall(scores[[3, 4, 40]], labels[[3, 4, 40]]))


def test_segment_that_nothing_was_seen_of_has_zero_scores():
    # By sums of a uniform softmax the first verb would win.
    actions = [(0, 0)] * 5 + [(i, i) for i in range(7)]
    metric = METRICS.build(dict(type='MeanTopKRecall', actions=actions))
    for label, recall in ((0, 0), (1, 0), (2, 1), (6, 1)):
        found = evaluate(metric, [
            sample(0, dict(action=label, verb=label, noun=label), [],
                   action=np.arange(12.))])
        assert found['online/verb_top5_recall_testra'] == recall
        assert found['online/noun_top5_recall_testra'] == recall


def test_subset_of_any_other_name_is_of_all_parts(samples):
    ids = [1, 2, 30, 31]
    found = evaluate(METRICS.build(
        dict(type='MeanTopKRecall', subsets=dict(rare_kitchen=ids))), samples)
    for part in 'action', 'verb', 'noun':
        some = [samples[i] for i in ids]
        wanted = mean_top_k_recall(
            np.stack([s[f'pred_{part}'][0, 1:].numpy() for s in some]),
            np.array([s['segment_labels'][part] for s in some]))
        assert found[f'online/{part}_top5_recall_strict_rare_kitchen'] == \
            wanted


def test_reads_actions(samples, tmp_path):
    path = tmp_path / 'actions.csv'
    rows = [f'{i},{i % 7},{i % 8},x' for i in range(12)]
    path.write_text('id,verb,noun,action\n' + '\n'.join(rows) + '\n')
    for each in samples:
        del each['pred_verb'], each['pred_noun']
    read, given = (
        evaluate(METRICS.build(dict(type='MeanTopKRecall', actions=actions)),
                 samples)
        for actions in (str(path), [(i % 7, i % 8) for i in range(12)]))
    assert read == given and len(read) == 3


@pytest.mark.parametrize('kwargs, error', [
    (dict(k=0), 'k must be at least 1'),
    (dict(actions='none.csv'), 'no file none.csv'),
    (dict(actions='ACTIONS'), 'columns id, verb and noun'),
    (dict(subsets=dict(unseen='none.csv')), 'no file none.csv'),
    (dict(subsets=dict(unseen='ACTIONS')), "'x,1' is not the id"),
], ids=lambda value: None)
def test_bad_options(tmp_path, kwargs, error):
    path = tmp_path / 'actions.csv'
    path.write_text('id,verb\nx,1\n')
    text = json.dumps(kwargs).replace('ACTIONS', str(path))
    with pytest.raises(ValueError, match=error):
        METRICS.build(dict(type='MeanTopKRecall', **json.loads(text)))


def test_other_samples(samples):
    metric = METRICS.build(dict(type='MeanTopKRecall'))
    with pytest.raises(ValueError, match='samples must be of segments'):
        metric.process(None, [{**samples[0], 'segment_labels': None}])
    metric.process(
        None, [samples[0], {**samples[1], 'evaluation_mode': 'testra'}])
    with pytest.raises(ValueError, match='one protocol, got strict, testra'):
        metric.evaluate(2)
