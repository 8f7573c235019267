# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmaction.registry import METRICS
from mmengine.registry import init_default_scope


def _metric():
    init_default_scope('mmaction')
    return METRICS.build(dict(type='VerbNounAccuracy', num_nouns=3))


def _sample(noun, verb, gt_noun, gt_verb):
    score, label = torch.zeros(5), torch.zeros(5)
    score[[noun, 3 + verb]] = torch.tensor([1., 9.])
    label[[gt_noun, 3 + gt_verb]] = 1
    return dict(pred_score=score, gt_label=label)


def test_an_action_is_right_where_noun_and_verb_are():
    metric = _metric()
    metric.process(None, [_sample(0, 1, 0, 1), _sample(2, 1, 2, 0)])
    metric.process(None, [_sample(1, 0, 0, 0), _sample(2, 0, 1, 1)])
    assert metric.evaluate(4) == {
        'acc/noun': 0.5, 'acc/verb': 0.5, 'acc/action': 0.25}


def test_names_a_label_of_another_kind():
    sample = dict(pred_score=torch.zeros(5), gt_label=torch.tensor([1]))
    with pytest.raises(ValueError, match=r'must be \(5,\).*got \(1,\)'):
        _metric().process(None, [sample])
