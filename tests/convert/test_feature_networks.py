# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Networks of feature streams: TeSTra, LSTR, MAT and MiniROAD."""
import pytest
import torch
from mmaction.registry import MODELS
from online.naive_mat import Sizes, shapes_of
from torch import nn

from mmvidattn.apis import load_config
from mmvidattn.convert import convert

THUMOS = Sizes(rgb=2048, flow=1024, width=1024, hidden=1024, classes=22,
               queries=16, first=32, future=48)


@pytest.mark.parametrize('name, sizes', [
    ('mat_thumos14', THUMOS),
    ('mat_ek100', THUMOS._replace(
        rgb=1024, width=2048, hidden=2048, classes=3807, verbs=98,
        nouns=301))])
def test_config_has_the_tensors_of_the_released_model(name, sizes):
    with torch.device('meta'):
        model = MODELS.build(load_config(name).model)
        tensors = {key: torch.empty(shape)
                   for key, shape in shapes_of(sizes).items()}
    model.load_state_dict(convert('mat', tensors), strict=True, assign=True)


class MiniROAD(nn.Module):
    """Released model with any widths."""

    def __init__(self, rgb, flow, width, hidden, classes):
        super().__init__()
        self.layer1 = nn.Sequential(
            nn.Linear(rgb + flow, width), nn.LayerNorm(width), nn.ReLU(),
            nn.Dropout(0.2))
        self.gru = nn.GRU(width, hidden, batch_first=True)
        self.f_classification = nn.Sequential(nn.Linear(hidden, classes))

    def forward(self, rgb, flow):
        x = self.layer1(torch.cat([rgb, flow], dim=2))
        return self.f_classification(self.gru(x)[0].relu())


@torch.no_grad()
def test_converted_weights_give_the_released_scores():
    torch.manual_seed(0)
    released = MiniROAD(6, 4, 10, 8, 22).eval()
    cfg = load_config('miniroad_thumos14').model
    cfg.backbone.update(in_channels=dict(rgb=6, flow=4), embed_dims=8,
                        proj_dims=10)
    cfg.cls_head.in_channels = 8
    ours = MODELS.build(cfg).eval()
    ours.load_state_dict(convert('miniroad', released.state_dict()))
    rgb, flow = torch.randn(2, 9, 6), torch.randn(2, 9, 4)
    got = ours(dict(rgb=rgb, flow=flow))['action']
    torch.testing.assert_close(got, released(rgb, flow))
