# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmaction.structures import ActionDataSample
from torch import nn

from mmvidattn.engine.first_fault import name_files, watch_outputs


class Block(nn.Module):
    """Takes and gives more than tensors."""

    def __init__(self, spoils=None):
        super().__init__()
        self.spoils = spoils

    def forward(self, x, size, mode=None):
        part = torch.full_like(x, self.spoils or 0)
        return dict(x=x, rest=[size, None, 'a name', (part, x.long())])


@pytest.mark.parametrize('spoils', [float('inf'), float('nan')])
def test_the_first_that_gives_what_is_not_finite_is_named(spoils):
    model = nn.ModuleDict(dict(one=Block(), two=Block(spoils), three=Block()))
    with watch_outputs(model) as found:
        for block in model.values():
            out = block(torch.ones(2), (1, 2), None)
    assert found == ['two (Block)']
    assert out['x'].isfinite().all()
    with watch_outputs(model) as found:
        model['one'](torch.tensor([1., spoils]), (1, 2))
        model['two'](torch.ones(2), (1, 2))
    assert found == ['the input of one (Block)']


def test_nothing_is_named_when_all_is_finite():
    model = nn.ModuleDict(dict(one=Block(), two=Block()))
    with watch_outputs(model) as found:
        for block in model.values():
            block(torch.ones(2), (1, 2), None)
    assert found == []
    assert not any(block._forward_hooks for block in model.values())


def test_names_files_of_each_kind():
    samples = [ActionDataSample(metainfo={key: f'a {key}'})
               for key in ('filename', 'frame_dir', 'video_name', 'other')]
    assert name_files(dict(data_samples=samples)) == [
        'a filename', 'a frame_dir', 'a video_name']
