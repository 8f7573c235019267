# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compare mmaction2's TSN with a ResNet with torchvision's names."""
import torch
import torch.nn.functional as F
from mmaction.registry import MODELS

from mmvidattn.convert import convert

# ResNet-50 with one block per stage.
WIDTHS = 64, 128, 256, 512


def _state():
    torch.manual_seed(0)
    state = {}

    def add(conv, norm, inside, outside, kernel):
        state[f'{conv}.weight'] = torch.randn(
            outside, inside, kernel, kernel) * (2 / inside / kernel**2)**0.5
        state.update({
            f'{norm}.weight': torch.rand(outside) + 0.5,
            f'{norm}.bias': torch.randn(outside) * 0.1,
            f'{norm}.running_mean': torch.randn(outside) * 0.1,
            f'{norm}.running_var': torch.rand(outside) + 0.5,
            f'{norm}.num_batches_tracked': torch.tensor(7)})

    add('conv1', 'bn1', 3, 64, 7)
    inside = 64
    for i, width in enumerate(WIDTHS):
        block = f'layer{i + 1}.0.'
        add(f'{block}conv1', f'{block}bn1', inside, width, 1)
        add(f'{block}conv2', f'{block}bn2', width, width, 3)
        add(f'{block}conv3', f'{block}bn3', width, 4 * width, 1)
        add(f'{block}downsample.0', f'{block}downsample.1', inside,
            4 * width, 1)
        inside = 4 * width
    return state


def _naive(state, x):

    def conv(x, conv, norm, stride=1):
        weight = state[f'{conv}.weight']
        x = F.conv2d(x, weight, None, stride, weight.shape[-1] // 2)
        return F.batch_norm(x, *(state[f'{norm}.{key}'] for key in (
            'running_mean', 'running_var', 'weight', 'bias')))

    x = F.max_pool2d(conv(x, 'conv1', 'bn1', 2).relu(), 3, 2, 1)
    for i in range(4):
        block = f'layer{i + 1}.0.'
        stride = 1 if i == 0 else 2
        y = conv(x, f'{block}conv1', f'{block}bn1').relu()
        y = conv(y, f'{block}conv2', f'{block}bn2', stride).relu()
        y = conv(y, f'{block}conv3', f'{block}bn3')
        x = (y + conv(x, f'{block}downsample.0', f'{block}downsample.1',
                      stride)).relu()
    return x


def test_converts_mits_tsn_to_mmaction2():
    model = MODELS.build(dict(
        type='Recognizer2D', backbone=dict(type='ResNet', depth=50),
        cls_head=dict(type='TSNHead', num_classes=5, in_channels=2048)))
    for i in range(4):
        stage = getattr(model.backbone, f'layer{i + 1}')
        setattr(model.backbone, f'layer{i + 1}', stage[:1])
    state = _state()
    saved = {f'module.base_model.{name}': value
             for name, value in state.items()}
    saved.update({'module.new_fc.weight': torch.randn(5, 2048),
                  'module.new_fc.bias': torch.randn(5)})
    result = convert('tsn_resnet', saved)
    model.load_state_dict(result)
    x = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        got = model.eval().backbone(x)
    torch.testing.assert_close(got, _naive(state, x), rtol=1e-4, atol=1e-4)
    assert torch.equal(result['cls_head.fc_cls.bias'],
                       saved['module.new_fc.bias'])
