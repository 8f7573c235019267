# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert weights of TSN, whose features LSTR and TeSTra use.

Supported are the names in the code of TSN's and SSN's authors, in TSN's
network files, and in ports, which write ``_`` for Caffe's ``/``:

https://github.com/yjxiong/temporal-segment-networks
https://github.com/yjxiong/tsn-pytorch
https://github.com/yjxiong/action-detection
https://github.com/shuangshuangguo/caffe2pytorch-tsn
https://github.com/Cadene/pretrained-models.pytorch
https://github.com/mit-han-lab/temporal-shift-module
"""
import re

from torch import Tensor

from .rename import missing_tensor, named_by, remark, rename_all

# Prefixes in some files, and the names of the classifier.
_PREFIX = r'^(?:module\.)?(?:base_model\.)?'
_CLASSIFIER = (r'^(?:fc|new_fc|fc_action|last_linear)\.', 'cls_head.fc_cls.')
_BACKBONE = (r'^(?!cls_head\.)', 'backbone.')
# SSN's classifiers, which have more inputs than the features of a frame.
_DROPPED = tuple(f'{name}_fc.' for name in (
    'activity', 'completeness', 'regressor', 'test'))
_PARAMETERS = r'weight|bias|running_mean|running_var|num_batches_tracked'

_INCEPTION = (
    # Caffe's separator.
    (r'/', '_'),
    (rf'_bn\.({_PARAMETERS})$', r'.norm.\1'),
    (r'^((?:conv\d|inception_\d\w)_\w+)\.(weight|bias)$', r'\1.conv.\2'),
    (r'^conv1_7x7_s2\.', 'conv1.'),
    (r'^conv2_3x3', 'conv2'),
    (r'^(inception_\d[a-e])_', r'\1.branches.'),
    (r'\.((?:double_)?3x3)_reduce\.', r'.\1.reduce.'),
    (r'\.3x3\.(conv|norm)\.', r'.3x3.conv.\1.'),
    (r'\.double_3x3_([12])\.', r'.double_3x3.conv\1.'),
    (r'\.pool_proj\.', '.pool.proj.'),
)
_OUR_INCEPTION = (
    r'(?:conv1|conv2|conv2_reduce|'
    r'inception_(?:3[a-c]|4[a-e]|5[ab])\.branches\.(?:1x1|'
    r'3x3\.(?:reduce|conv)|double_3x3\.(?:reduce|conv1|conv2)|pool\.proj))'
    rf'\.(?:conv\.(?:weight|bias)|norm\.(?:{_PARAMETERS}))')

_RESNET = (
    (r'^(layer\d\.\d+\.)?conv(\d)\.weight$', r'\1conv\2.conv.weight'),
    (r'^(layer\d\.\d+\.)?bn(\d)\.', r'\1conv\2.bn.'),
    (r'\.downsample\.0\.', '.downsample.conv.'),
    (r'\.downsample\.1\.', '.downsample.bn.'),
)
_MMACTION_RESNET = (
    r'(?:conv1|layer\d\.\d+\.(?:conv\d|downsample))'
    rf'\.(?:conv\.weight|bn\.(?:{_PARAMETERS}))')


def bn_inception(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert BN-Inception of TSN, SSN or ImageNet.

    Early files have batch normalization's tensors as [1, C]; they become [C].
    The classifiers of SSN are left out.

    Returns:
        Tensors of a ``Recognizer2D`` with ``BNInception`` and ``TSNHead``.
        For an SSN, tensors of the head are missing.
    """
    return _convert(state_dict, _INCEPTION, _OUR_INCEPTION, 'BN-Inception')


def tsn_resnet(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert TSN on ResNet, of MIT's or TSN's authors, to mmaction2's TSN.

    A ResNet of torchvision or timm is also accepted. A TSM, whose
    convolutions shift, is rejected, because it is another model.

    Returns:
        Tensors of a ``Recognizer2D`` with mmaction2's ``ResNet`` and
        ``TSNHead``.
    """
    return _convert(state_dict, _RESNET, _MMACTION_RESNET, 'a TSN on a ResNet')


def _convert(state_dict: dict[str, Tensor], rules: tuple, ours: str,
             model: str) -> dict[str, Tensor]:
    plain = named_by(state_dict, ((_PREFIX, ''), ))
    out = rename_all(
        {name: state_dict[source] for name, source in plain.items()},
        (_CLASSIFIER, *rules, _BACKBONE), model, unused=_DROPPED,
        valid=rf'backbone\.(?:{ours})|cls_head\.fc_cls\.(?:weight|bias)')
    if 'backbone.conv1.conv.weight' not in out:
        raise missing_tensor(model, 'first convolution', state_dict)
    for name, value in out.items():
        # num_batches_tracked is a scalar.
        if re.search(r'\.(?:norm|bn)\.', name) and value.dim():
            out[name] = value.flatten()
    remark('dropped', (source for name, source in plain.items()
                       if name.startswith(_DROPPED)))
    return out
