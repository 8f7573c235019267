# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import zipfile

import numpy as np
import pytest
import torch
from mmaction.registry import METRICS

VERBS, NOUNS = 97, 300
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


def check_format(found, challenge, ids):
    """Check the format like the challenge's validation script."""
    levels = {f'sls_{key}' for key in ('pt', 'tl', 'td')}
    assert found.keys() == {'version', 'challenge', 'results'} | levels
    assert found['version'] == '0.2' and found['challenge'] == challenge
    assert all(0 <= found[key] <= 5 for key in levels)
    assert list(found['results']) == ids
    for entry in found['results'].values():
        assert set(entry) == {'verb', 'noun', 'action'}
        for part, number in (('verb', VERBS), ('noun', NOUNS)):
            assert sorted(map(int, entry[part])) == list(range(number))
        assert len(entry['action']) == 100
        for key, score in entry['action'].items():
            verb, noun = map(int, key.split(','))
            assert verb < VERBS and noun < NOUNS
            assert isinstance(score, float)


@pytest.mark.parametrize('suffix, parts', [
    ('.json', {}), ('.zip', dict(action=400))], ids=['parts', 'actions'])
def test_anticipation(tmp_path, suffix, parts):
    """Scores of verbs and nouns default to sums of those of actions."""
    ids = ['P01_101_0', 'P01_101_1', 'P37_103_77']
    samples = [anticipated(each, i, **parts) for i, each in enumerate(ids)]
    result = submit(tmp_path / f'new/new/test{suffix}', samples,
                    actions=ACTIONS, supervision=dict(pt=1, tl=3, td=4))
    check_format(result, 'action_anticipation', ids)
    assert (result['sls_pt'], result['sls_tl'], result['sls_td']) == (1, 3, 4)
    for sample in samples:
        entry = result['results'][sample['segment_id']]
        # Row 1 counts, and class 0 is the background.
        action = sample['pred_action'][1, 1:].tolist()
        order = sorted(range(400), key=lambda i: -action[i])[:100]
        assert list(entry['action'].items()) == [
            (f'{ACTIONS[i][0]},{ACTIONS[i][1]}', pytest.approx(action[i]))
            for i in order]
        share = sample['pred_action'][1, 1:].softmax(0).tolist()
        for column, (part, number) in enumerate((('verb', VERBS),
                                                 ('noun', NOUNS))):
            want = [sum(x for x, one in zip(share, ACTIONS)
                        if one[column] == n) for n in range(number)]
            if not parts:
                want = sample[f'pred_{part}'][1, 1:].tolist()
            assert list(entry[part].values()) == pytest.approx(want)


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
    check_format(result, 'action_recognition', ['P01_101_0'])
    entry = result['results']['P01_101_0']
    assert max(entry['verb'], key=entry['verb'].get) == str(int(verb.argmax()))
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
