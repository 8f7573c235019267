# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
from mmaction.registry import MODELS
from torch import nn

from mmvidattn.apis import load_config
from mmvidattn.convert import convert


class Released(nn.Module):
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


def _ours(name, **sizes):
    cfg = load_config(name).model
    cfg.backbone.update(sizes)
    cfg.cls_head.in_channels = cfg.backbone.embed_dims
    return MODELS.build(cfg)


@torch.no_grad()
def test_converted_weights_give_the_released_scores():
    torch.manual_seed(0)
    released = Released(6, 4, 10, 8, 22).eval()
    ours = _ours('miniroad_thumos14', in_channels=dict(rgb=6, flow=4),
                 embed_dims=8, proj_dims=10).eval()
    ours.load_state_dict(convert('miniroad', released.state_dict()))
    rgb, flow = torch.randn(2, 9, 6), torch.randn(2, 9, 4)
    got = ours(dict(rgb=rgb, flow=flow))['action']
    torch.testing.assert_close(got, released(rgb, flow))
