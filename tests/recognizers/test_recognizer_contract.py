# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Contract of all clip recognizers that are registered in MODELS.

A new subclass of Recognizer3D needs no test code if its arguments have
defaults; a teacher's config is given if it takes one.
"""
import pytest
import torch
from helpers import build_model
from mmaction.models.recognizers import Recognizer3D
from mmaction.structures import ActionDataSample
from registered import arguments_for, classes_of

import mmvidattn
from mmvidattn.recognizers import FineTunedRecognizer3D, TokenLabelRecognizer3D

BACKBONE = dict(
    type='DualFormer', num_frames=4, img_size=32, arch=dict(
        embed_dims=8, num_layers=(1, 1, 1, 1), num_heads=(1, 1, 2, 2)))
HEAD = dict(type='I3DHead', num_classes=5, in_channels=64)
TEACHER = dict(type='Recognizer3D', backbone=BACKBONE, cls_head=HEAD)
HEADS = {TokenLabelRecognizer3D: dict(HEAD, type='TokenLabelHead')}
OPTIONS = {FineTunedRecognizer3D: dict(freeze=1)}
CLIP = [x for x in classes_of('recognizers') if issubclass(x, Recognizer3D)]
EACH = pytest.mark.parametrize('kind', CLIP, ids=lambda x: x.__name__)


def config(kind, **options):
    return dict(
        type=kind.__name__, backbone=BACKBONE,
        cls_head=HEADS.get(kind, HEAD), **OPTIONS.get(kind, {}),
        **arguments_for(kind, teacher=TEACHER, feature_loss=None, **options))


def build(kind):
    model = build_model(config(kind))
    torch.nn.init.normal_(model.cls_head.fc_cls.weight)
    return model


def batch():
    clips = torch.randn(2, 1, 3, 4, 32, 32,
                        generator=torch.Generator().manual_seed(2))
    return clips, [ActionDataSample().set_gt_label(i) for i in (3, 1)]


def test_other_classes_have_their_own_tests():
    assert {x.__name__ for x in classes_of('recognizers')} == {
        x.__name__ for x in CLIP} | {'AppendReversedClips',
                                     'OnlineActionDetector'}


@EACH
def test_every_trained_parameter_gets_a_finite_gradient(kind):
    model = build(kind).train()
    losses = model.loss(*batch())
    sum(x.mean() for name, x in losses.items() if 'loss' in name).backward()
    trained = {name: p for name, p in model.named_parameters()
               if p.requires_grad}
    assert any(name.startswith('backbone.') for name in trained)
    for name, p in trained.items():
        assert p.grad is not None and p.grad.isfinite().all(), name


@EACH
def test_predicts_like_a_plain_recognizer_with_its_checkpoint(kind, tmp_path):
    """And like itself, without a checkpoint of a teacher."""
    model = build(kind).eval()
    clips, samples = batch()
    got = model(clips, mode='tensor', stage='head')
    torch.save(dict(state_dict=model.state_dict()), tmp_path / 'model.pth')
    for cfg in config(kind, teacher_checkpoint='missing.pth'), dict(
            type='Recognizer3D', backbone=BACKBONE,
            cls_head=HEADS.get(kind, HEAD)):
        (tmp_path / 'model.py').write_text(f'model = {cfg}')
        loaded = mmvidattn.get_model(
            tmp_path / 'model.py', tmp_path / 'model.pth')
        torch.testing.assert_close(
            loaded(clips, mode='tensor', stage='head'), got)
    result = model(clips, samples, mode='predict')
    assert [sample.pred_label.item() for sample in result] == \
        got.argmax(1).tolist()


@EACH
def test_clips_are_independent(kind):
    model = build(kind).eval()
    clips, _ = batch()
    torch.testing.assert_close(
        torch.cat([model(x[None], mode='tensor', stage='head')
                   for x in clips]),
        model(clips, mode='tensor', stage='head'), rtol=1e-4, atol=1e-5)
