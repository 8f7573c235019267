# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import zipfile

import numpy as np
import pytest
import torch
from mmaction.registry import METRICS

VERBS, NOUNS = 97, 300


def evaluate(samples, **kwargs):
    metric = METRICS.build(
        dict(type='VerbNounAccuracy', num_nouns=NOUNS, **kwargs))
    metric.process(None, samples)
    return metric.evaluate(len(samples))


def marked(noun, verb):
    """Return zeros with a 1 for the noun and a 1 for the verb."""
    result = torch.zeros(NOUNS + VERBS)
    result[[noun, NOUNS + verb]] = 1
    return result


@pytest.fixture
def samples():
    torch.manual_seed(0)
    labels = [marked(i % 7, i % 6) for i in range(40)]
    return [dict(pred_score=torch.randn(len(label)) + 3 * label,
                 gt_label=label, segment_id=f'P0{i % 4}_01_{i}')
            for i, label in enumerate(labels)]


@pytest.mark.parametrize('score', ['logit', 'prob'])
def test_top5_matches_products_of_all_probabilities(samples, score):
    right = dict.fromkeys(('action', 'verb', 'noun'), 0)
    first = dict(right)
    for i, sample in enumerate(samples):
        noun = sample['pred_score'][:NOUNS].softmax(0)
        verb = sample['pred_score'][NOUNS:].softmax(0)
        if score == 'prob':
            sample['pred_score'] = torch.cat([noun, verb])
        v, n = i % 6, i % 7
        for part, true, scores in (
                ('action', v * NOUNS + n, torch.outer(verb, noun)),
                ('verb', v, verb), ('noun', n, noun)):
            ranked = scores.flatten().argsort().tolist()[-5:]
            right[part] += true in ranked
            first[part] += true == ranked[-1]
    result = evaluate(samples, score=score)
    # The first result selects the best checkpoint.
    assert next(iter(result)) == 'acc/action'
    for part, number in right.items():
        assert result[f'acc/{part}_top5'] == pytest.approx(number / 40)
        assert result[f'acc/{part}'] == pytest.approx(first[part] / 40)
    assert 4 < first['action'] < right['action'] < 40


def test_first_classes_win_ties():
    result = evaluate([
        dict(pred_score=torch.zeros(397), gt_label=marked(*one))
        for one in ((0, 0), (4, 4), (5, 5), (299, 96))])
    for part in 'noun', 'verb':
        assert result[f'acc/{part}'] == 1 / 4
        assert result[f'acc/{part}_top5'] == 2 / 4
    assert result['acc/action'] == 1 / 4


def test_subsets(samples, tmp_path):
    (tmp_path / 'verbs.csv').write_text('verb_class\n2\n')
    subsets = dict(unseen=['P01'], tail_verb=str(tmp_path / 'verbs.csv'))
    result = evaluate(samples, subsets=subsets)
    assert len(result) == 6 + 6 + 2
    for name, inside in (('unseen', samples[1::4]), ('tail', samples[2::6])):
        hits = [s['gt_label'][NOUNS + s['pred_score'][NOUNS:].argmax()]
                for s in inside]
        assert result[f'acc/verb_{name}'] == pytest.approx(
            sum(hits).item() / len(hits))
    del samples[0]['segment_id']
    with pytest.raises(ValueError, match='unseen .*segment_id'):
        evaluate(samples, subsets=subsets)


def test_rejects_invalid_samples(samples):
    infinite = samples[0]['pred_score'].clone()
    infinite[-1] = torch.inf
    for score, change, message in (
            ('logit', dict(gt_label=torch.tensor([1])),
             r'must be \(397,\).*got \(1,\)'),
            ('logit', dict(pred_score=infinite), 'pred_score .*1 of 397'),
            ('prob', dict(pred_score=torch.full((397, ), -0.5)),
             'pred_score .*-0.5')):
        with pytest.raises(ValueError, match=message):
            evaluate([samples[0] | change], score=score)
    # A probability of 0 is valid.
    evaluate([samples[0] | dict(pred_score=marked(0, 0))], score='prob')


# Submissions

ACTIONS = [(i % VERBS, (7 * i) % NOUNS) for i in range(400)]


def anticipated(identity, seed, **parts):
    rng = np.random.default_rng(seed)
    parts = parts or dict(action=400, verb=VERBS, noun=NOUNS)
    return dict(
        evaluation_mode='testra', video_name='v', segment_id=identity,
        segment_labels={}, score_rows=[1],
        **{f'pred_{part}': torch.tensor(
            rng.normal(size=(2, number + 1)), dtype=torch.float32)
            for part, number in parts.items()})


def submit(path, samples, **kwargs):
    metric = METRICS.build(
        dict(type='EpicSubmission', out_file=str(path), **kwargs))
    metric.process(None, samples)
    assert metric.evaluate(len(samples)) == {}
    if path.suffix == '.json':
        return json.loads(path.read_text())
    with zipfile.ZipFile(path) as file:
        assert file.namelist() == ['test.json']
        return json.loads(file.read('test.json'))


@pytest.mark.parametrize('suffix, parts', [
    ('.json', {}), ('.zip', dict(action=400))], ids=['parts', 'actions'])
def test_anticipation(tmp_path, suffix, parts):
    """Scores of verbs and nouns default to sums of those of actions."""
    ids = ['P01_101_0', 'P01_101_1', 'P37_103_77']
    samples = [anticipated(each, i, **parts) for i, each in enumerate(ids)]
    result = submit(tmp_path / f'new/new/test{suffix}', samples,
                    actions=ACTIONS, supervision=dict(pt=1, tl=3, td=4))
    found = result.pop('results')
    assert result == dict(version='0.2', challenge='action_anticipation',
                          sls_pt=1, sls_tl=3, sls_td=4)
    assert list(found) == ids
    for sample, entry in zip(samples, found.values()):
        # Row 1 counts, and class 0 is the background.
        action = sample['pred_action'][1, 1:]
        assert entry['action'] == pytest.approx({
            '{},{}'.format(*ACTIONS[i]): action[i].item()
            for i in action.topk(100).indices})
        share = action.softmax(0).tolist()
        for column, (part, number) in enumerate((('verb', VERBS),
                                                 ('noun', NOUNS))):
            want = [sum(x for x, one in zip(share, ACTIONS)
                        if one[column] == n) for n in range(number)]
            if not parts:
                want = sample[f'pred_{part}'][1, 1:].tolist()
            assert entry[part] == pytest.approx(
                {str(n): value for n, value in enumerate(want)})


@pytest.mark.parametrize('score', ['logit', 'prob'])
def test_recognition(tmp_path, score):
    torch.manual_seed(0)
    noun, verb = torch.randn(NOUNS), torch.randn(VERBS)
    scores = [noun, verb]
    if score == 'prob':
        scores = [noun.softmax(0), verb.softmax(0)]
        # A probability of 0 must become a number that JSON supports.
        scores[1][verb.argmin()] = 0
    sample = dict(pred_score=torch.cat(scores), segment_id='P01_101_0')
    result = submit(tmp_path / 'test.json', [sample], score=score)
    assert result['challenge'] == 'action_recognition'
    entry = result['results']['P01_101_0']
    for part, want in ('verb', verb), ('noun', noun):
        order = sorted(entry[part], key=entry[part].get, reverse=True)
        assert order == [str(i) for i in want.argsort(descending=True)
                         .tolist()]
    products = (verb[:, None] + noun).flatten()
    best = products.argsort(descending=True)[:100].tolist()
    assert list(entry['action']) == [f'{i // NOUNS},{i % NOUNS}' for i in best]


@pytest.mark.parametrize('kwargs, error', [
    (dict(out_file='x.csv'), 'must end with .json or .zip'),
    (dict(supervision=dict(pt=6, tl=3, td=3)), '0 to 5 each'),
    (dict(supervision=dict(pt=1)), '0 to 5 each'),
    ({}, 'actions .*got None'),
    (dict(actions=[(0, 0)]), 'actions .*400 .*got 1'),
    (dict(sample=dict(pred_score=torch.zeros(397))), 'segment_id'),
    (dict(actions=ACTIONS, nan=True), 'pred_verb of segment P01_101_0 '),
], ids=lambda value: value if isinstance(value, str) else '')
def test_invalid_input(tmp_path, kwargs, error):
    kwargs = dict(kwargs)
    sample = kwargs.pop('sample', None) or anticipated('P01_101_0', 0)
    if kwargs.pop('nan', False):
        sample['pred_verb'][1, 3] = torch.nan
    path = tmp_path / kwargs.pop('out_file', 'x.json')
    with pytest.raises(ValueError, match=error):
        submit(path, [sample], **kwargs)
