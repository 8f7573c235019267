# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import itertools

import pytest
import torch
from mmaction.registry import METRICS

NOUNS, VERBS = 7, 6


def build(num_nouns=NOUNS, **kwargs):
    return METRICS.build(
        dict(type='VerbNounAccuracy', num_nouns=num_nouns, **kwargs))


def evaluate(samples, num_nouns=NOUNS, **kwargs):
    metric = build(num_nouns, **kwargs)
    metric.process(None, samples)
    return metric.evaluate(len(samples))


def marked(noun, verb, nouns=NOUNS, verbs=VERBS):
    """Return zeros with a 1 for the noun and a 1 for the verb."""
    result = torch.zeros(nouns + verbs)
    result[[noun, nouns + verb]] = 1
    return result


@pytest.fixture
def samples():
    torch.manual_seed(0)
    return [dict(pred_score=torch.randn(NOUNS + VERBS)
                 + 1.5 * marked(i % NOUNS, i % VERBS),
                 gt_label=marked(i % NOUNS, i % VERBS),
                 segment_id=f'P0{i % 4}_01_{i}') for i in range(40)]


@pytest.mark.parametrize('score', ['logit', 'prob'])
def test_top5_matches_products_of_all_probabilities(samples, score):
    right = dict(action=0, verb=0, noun=0)
    first = dict(right)
    for i, sample in enumerate(samples):
        noun = sample['pred_score'][:NOUNS].softmax(0)
        verb = sample['pred_score'][NOUNS:].softmax(0)
        if score == 'prob':
            sample['pred_score'] = torch.cat([noun, verb])
        products = {(v, n): float(verb[v] * noun[n])
                    for v, n in itertools.product(range(VERBS), range(NOUNS))}
        best = sorted(products, key=products.get)[-5:]
        for part, true, ranked in (
                ('action', (i % VERBS, i % NOUNS), best),
                ('verb', i % VERBS, verb.argsort().tolist()[-5:]),
                ('noun', i % NOUNS, noun.argsort().tolist()[-5:])):
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
        dict(pred_score=torch.zeros(397), gt_label=marked(*one, 300, 97))
        for one in ((0, 0), (4, 4), (5, 5), (299, 96))], 300)
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
        hits = [s['pred_score'][NOUNS:].argmax() == s['gt_label'][NOUNS:]
                .argmax() for s in inside]
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
             r'must be \(13,\).*got \(1,\)'),
            ('logit', dict(pred_score=infinite), 'pred_score .*1 of 13'),
            ('prob', dict(pred_score=torch.full((13, ), -0.5)),
             'pred_score .*-0.5')):
        with pytest.raises(ValueError, match=message):
            build(score=score).process(None, [samples[0] | change])
    # A probability of 0 is valid.
    build(score='prob').process(
        None, [dict(samples[0], pred_score=marked(0, 0))])
