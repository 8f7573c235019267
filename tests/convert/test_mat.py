# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmaction.registry import MODELS
from online.naive_mat import Sizes, shapes_of

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
