# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmaction.structures import ActionDataSample
from torch import nn

from mmvidattn.engine.batch_samples import name_files
from mmvidattn.engine.first_fault import watch_outputs


class Block(nn.Module):
    """Module with inputs and outputs that are not all tensors."""

    def __init__(self, value=None):
        super().__init__()
        self.spoils = value

    def forward(self, x, size, mode=None):
        part = torch.full_like(x, self.spoils or 0)
        return dict(x=x, rest=[size, None, 'a name', (part, x.long())])


@pytest.mark.parametrize('value', [float('inf'), float('nan')])
def test_names_first_module_with_bad_output(value):
    model = nn.ModuleDict(dict(one=Block(), two=Block(value), three=Block()))
    with watch_outputs(model) as result:
        for block in model.values():
            out = block(torch.ones(2), (1, 2), None)
    assert result == ['two (Block)']
    assert out['x'].isfinite().all()
    with watch_outputs(model) as result:
        model['one'](torch.tensor([1., value]), (1, 2))
        model['two'](torch.ones(2), (1, 2))
    assert result == ['the input of one (Block)']


def test_names_nothing_if_all_values_are_finite():
    model = nn.ModuleDict(dict(one=Block(), two=Block()))
    with watch_outputs(model) as result:
        for block in model.values():
            block(torch.ones(2), (1, 2), None)
    assert result == []
    assert not any(block._forward_hooks for block in model.values())


def test_names_files_of_each_kind():
    samples = [ActionDataSample(metainfo={key: f'a {key}'})
               for key in ('filename', 'frame_dir', 'video_name', 'other')]
    assert name_files(dict(data_samples=samples)) == [
        'a filename', 'a frame_dir', 'a video_name']
