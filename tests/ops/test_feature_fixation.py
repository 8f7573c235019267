# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmvidattn.ops import fixation_ratio
from mmvidattn.ops.feature_fixation import naive_fixation_ratio


@pytest.mark.parametrize('aggregate', ['concat', 'add', 'mul'])
@pytest.mark.parametrize('num_inputs', [1, 2, 3])
def test_matches_naive(aggregate, num_inputs):
    inputs = torch.randn(3, 2, 7, 2, 8, dtype=torch.float64)[:num_inputs]
    width = 8 * num_inputs if aggregate == 'concat' else 8
    args = [
        x.requires_grad_() for x in (*inputs.unbind(0),
                                     torch.randn(8, width).double(),
                                     torch.randn(8).double())
    ]
    *inputs, weight, bias = args
    y = fixation_ratio(tuple(inputs), weight, bias, aggregate)
    y_ref = naive_fixation_ratio(tuple(inputs), weight, bias, aggregate)
    assert torch.allclose(y, y_ref, rtol=1e-12)
    for a, b in zip(
            torch.autograd.grad(y.square().sum(), args),
            torch.autograd.grad(y_ref.square().sum(), args)):
        assert torch.allclose(a, b, rtol=1e-10)


def test_rejects_unknown_aggregate():
    x = torch.zeros(1, 4)
    with pytest.raises(ValueError, match="'concat', 'add', 'mul'.*'max'"):
        fixation_ratio((x, ), torch.zeros(4, 4), torch.zeros(4), 'max')
