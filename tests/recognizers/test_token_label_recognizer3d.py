# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
import torch.nn.functional as F
from helpers import build_model
from mmaction.structures import ActionDataSample

from mmvidattn.losses import soft_token_labels

ARCH = dict(embed_dims=8, num_layers=(1, 1, 1, 2), num_heads=(1, 1, 2, 2))
BACKBONE = dict(type='DualFormer', arch=ARCH, num_frames=8, img_size=64)
WIDE = dict(BACKBONE, arch=dict(ARCH, embed_dims=16))
HEAD = dict(type='I3DHead', num_classes=9, in_channels=128)
TEACHER = dict(type='Recognizer3D', backbone=WIDE, cls_head=HEAD)


def _build(**kwargs):
    return build_model(dict(
        type='TokenLabelRecognizer3D', backbone=BACKBONE,
        cls_head=dict(type='TokenLabelHead', num_classes=9, in_channels=64),
        data_preprocessor=dict(type='ActionDataPreprocessor'),
        **{'teacher': TEACHER, **kwargs}))


@pytest.fixture(scope='module')
def checkpoint(tmp_path_factory):
    teacher = build_model(TEACHER, seed=1)
    torch.nn.init.normal_(teacher.cls_head.fc_cls.weight)
    path = tmp_path_factory.mktemp('teacher') / 'teacher.pth'
    torch.save(dict(state_dict=teacher.state_dict()), path)
    return str(path), teacher.eval()


def _batch():
    clips = torch.randn(2, 1, 3, 8, 64, 64,
                        generator=torch.Generator().manual_seed(2))
    return clips, [ActionDataSample().set_gt_label(i) for i in (3, 5)]


def test_labels_come_from_teacher_on_the_same_clips(checkpoint):
    path, teacher = checkpoint
    model = _build(teacher_checkpoint=path, topk=2).train()
    model.cls_head.token_linear.eval()
    clips, samples = _batch()
    state = {k: v.clone() for k, v in model.state_dict().items()}
    loss = model.loss(clips, samples)['loss_token']
    loss.backward()
    model.load_state_dict(state)
    with torch.no_grad():
        feats = teacher.backbone(clips[:, 0]).movedim(1, -1)
        labels = soft_token_labels(teacher.cls_head.fc_cls(feats), 2)
        scores = model.cls_head.forward_tokens(model.backbone(clips[:, 0]))
    torch.testing.assert_close(loss.detach(), F.cross_entropy(
        scores.flatten(0, 3), labels.flatten(0, 3)) / 2)
    # The teacher stays frozen, in eval mode.
    model.train()
    assert not any(x.training for x in model._teacher.model.modules())
    assert all(p.grad is None for p in model._teacher.model.parameters())


def test_as_released_teacher_is_in_train_mode_and_saved():
    model = _build(as_released=True).train()
    assert model.teacher.training
    assert any(name.startswith('teacher.') for name in model.state_dict())
    assert not any(p.requires_grad for p in model.teacher.parameters())
    clips, samples = _batch()
    torch.nn.init.normal_(model.teacher.cls_head.fc_cls.weight)
    first, again = (model.teacher_logits(clips, (4, 2, 2)) for _ in range(2))
    # Dropout is active.
    assert not torch.allclose(first, again)
    model.loss(clips, samples)['loss_token'].backward()


@pytest.mark.parametrize('as_released', [False, True])
def test_averages_additional_frames_of_teacher(as_released):
    """Adjacent frames are averaged; as released, distant frames."""
    model = _build(as_released=as_released).eval()
    clips, _ = _batch()
    fine = model.teacher_logits(clips, (4, 2, 2))
    coarse = model.teacher_logits(clips, (2, 2, 2))
    pairs = [[0, 2], [1, 3]] if as_released else [[0, 1], [2, 3]]
    torch.testing.assert_close(coarse, fine[:, pairs].mean(2))
