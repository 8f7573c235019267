# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import copy

import pytest
import torch
import torch.nn.functional as F
from helpers import build_model
from mmaction.structures import ActionDataSample
from mmengine.logging import MessageHub
from mmengine.optim import OptimWrapper

ARCH = dict(num_frames=4, img_size=32, embed_dims=16, num_layers=2,
            num_heads=2, init_std=0.2)
BACKBONES = dict(
    xvit=dict(type='XViT', **ARCH),
    joint=dict(type='ViViT', **ARCH),
    fact_encoder=dict(type='ViViT', model='fact_encoder',
                      num_temporal_layers=1, **ARCH),
    fact_attention=dict(type='ViViT', model='fact_attention', **ARCH))
XVIT_HEAD = dict(type='XViTHead', num_classes=5, in_channels=16, num_heads=2,
                 hidden_dims=8, init_std=1.)
VIVIT_HEAD = dict(type='ViViTHead', num_classes=5, in_channels=16, init_std=1.)
LINEAR = dict(attention=dict(type='LinearAttention', offset='auto'),
              fixation=dict(mode='cooperative', inputs='qkv', shared=True))


def config(name='joint', backbone=None, head=None, **options):
    """Build a student with linear and a teacher with softmax attention."""
    teacher = dict(type='Recognizer3D', backbone=BACKBONES[name],
                   cls_head=XVIT_HEAD if name == 'xvit' else VIVIT_HEAD)
    return dict(
        type='DistilledRecognizer3D',
        backbone=dict(teacher['backbone'], **LINEAR, **(backbone or {})),
        cls_head=dict(teacher['cls_head'], **(head or {})),
        data_preprocessor=dict(
            type='ActionDataPreprocessor', mean=[127.5] * 3, std=[127.5] * 3,
            format_shape='NCTHW'),
        **{'teacher': teacher, **options})


def build(*args, **kwargs):
    return build_model(config(*args, **kwargs))


@pytest.fixture(autouse=True)
def epoch(request):
    """Function that sets the epoch, like a runner."""
    MessageHub.get_instance(request.node.name)

    def set_epoch(number):
        MessageHub.get_current_instance().update_info('epoch', number)

    return set_epoch


@pytest.fixture(scope='module')
def teachers(tmp_path_factory):
    """Checkpoint and model of each teacher, by name."""
    results = {}
    for name in BACKBONES:
        teacher = build_model(config(name)['teacher'], seed=7)
        path = f'{tmp_path_factory.mktemp("teacher")}/{name}.pth'
        torch.save(dict(state_dict=teacher.state_dict()), path)
        results[name] = path, teacher.eval().requires_grad_(False)
    return results


def batch(size=2):
    generator = torch.Generator().manual_seed(2)
    clips = torch.randn(size, 1, 3, 4, 32, 32, generator=generator)
    return clips, [ActionDataSample().set_gt_label(i % 5) for i in range(size)]


def outputs(model, clips):
    """Compute the outputs of all blocks in order, and the logits."""
    backbone, result = model.backbone, []
    blocks = [*getattr(backbone, 'blocks', ())] or [
        *backbone.encoder.blocks, *getattr(
            backbone.encoder.temporal, 'blocks', ())]
    handles = [block.register_forward_hook(
        lambda module, args, y: result.append(y)) for block in blocks]
    logits = model.cls_head(backbone(clips[:, 0]))
    for handle in handles:
        handle.remove()
    return result, logits


def check_feature_loss(losses, features, targets):
    cosines = [F.cosine_similarity(a.double(), b.double(), dim=-1).mean()
               for a, b in zip(features, targets, strict=True)]
    assert losses['loss_feature'].item() == pytest.approx(
        2 - 2 * sum(cosines).item() / len(cosines), rel=1e-5)


@pytest.mark.parametrize('name', BACKBONES)
def test_losses_match_formulas(teachers, name):
    path, teacher = teachers[name]
    model = build(name, teacher_checkpoint=path, logit_loss=dict(
        type='LogitDistillationLoss', temperature=3., loss_weight=0.5),
        head=dict(dropout_ratio=0.), task_loss_weight=0.25)
    clips, samples = batch()
    losses = model.train().loss(clips, samples)
    (features, logits), (target_features, targets) = (
        outputs(m, clips) for m in (model, teacher))
    assert len(features) == (3 if name == 'fact_encoder' else 2)
    check_feature_loss(losses, features, target_features)
    q, p = ((x.double() / 3).softmax(-1) for x in (logits, targets))
    assert losses['loss_logit'].item() == pytest.approx(
        0.5 * 9 * (p * (p / q).log()).sum(-1).mean().item(), rel=1e-3)
    labels = torch.tensor([0, 1])
    assert losses['loss_cls'].item() == pytest.approx(
        F.cross_entropy(logits, labels).item() / 4, rel=1e-5)
    assert losses['loss_feature'] > 0.01 < losses['loss_logit']


def test_starts_from_matching_tensors_and_reports_all(teachers, monkeypatch):
    (path, teacher), reports = teachers['joint'], []
    monkeypatch.setattr(
        'mmvidattn.backbones.pretrained.print_log',
        lambda message, logger: reports.append(message))
    student, source = (x.state_dict() for x in (
        build(teacher_checkpoint=path), teacher))
    new = {key for key in student if '.fixation.gate.' in key}
    assert len(new) == 4 and student.keys() - new == source.keys()
    assert all(torch.equal(student[key], source[key]) for key in source)
    report = reports.pop()
    assert f'{len(source)} of {len(student)} tensors' in report
    assert all(key in report for key in new)
    assert not any(key in report for key in source)
    other = build(teacher_checkpoint=path, start_from_teacher=False)
    assert not reports
    assert not torch.equal(other.state_dict()['cls_head.fc_cls.weight'],
                           source['cls_head.fc_cls.weight'])


def test_teacher_is_frozen_and_outside_the_student(teachers):
    path, before = teachers['joint']
    model = build(teacher_checkpoint=path)
    start, seen = copy.deepcopy(model.state_dict()), []
    for one in model, model._teacher.on('cpu'):
        one.backbone.register_forward_pre_hook(
            lambda module, args: seen.append(args[0]))
    clips, samples = batch()
    model.train().train_step(
        dict(inputs=[*(clips * 50 + 100)], data_samples=samples),
        OptimWrapper(torch.optim.SGD(model.parameters(), 0.1)))
    # Both get the output of the data preprocessor.
    assert torch.equal(*seen) and seen[0].abs().max() < 2
    teacher = model._teacher.model
    assert not any(module.training for module in teacher.modules())
    assert not any(p.requires_grad or p.grad is not None
                   for p in teacher.parameters())
    assert all(torch.equal(value, before.state_dict()[key])
               for key, value in teacher.state_dict().items())
    moved = {key for key, value in model.state_dict().items()
             if not torch.equal(value, start[key])}
    assert {key for key in start if '.gate.' in key} < moved
    assert copy.deepcopy(model)._teacher.model is teacher


def test_distills_first_and_then_learns_the_task(teachers, epoch):
    """All parameters have gradients, or DistributedDataParallel would raise.
    """
    model = build(teacher_checkpoint=teachers['joint'][0], distill_epochs=2,
                  logit_loss=None).train()
    for number, distills in ((0, True), (1, True), (2, False)):
        epoch(number)
        with torch.autocast('cpu', torch.bfloat16, enabled=number == 0):
            losses = model.loss(*batch())
        assert ('loss_feature' in losses) == distills
        assert (losses['loss_cls'] == 0) == distills
        model.zero_grad()
        sum(x for name, x in losses.items() if 'loss' in name).backward()
        assert all(p.grad is not None for p in model.parameters())
    torch.testing.assert_close(losses['loss_cls'], F.cross_entropy(
        outputs(model, batch()[0])[1], torch.tensor([0, 1])))


def test_causal_student_learns_block_outputs():
    """Also if activations are computed again in the backward pass."""
    backbone = dict(
        type='LinearVideoTransformer', num_frames=4, img_size=32,
        patch_size=16, patch_stride=16, patch_padding=0, embed_dims=16,
        num_layers=2, num_heads=2, init_std=0.2)
    head = dict(type='I3DHead', num_classes=5, in_channels=16)
    options = config(teacher=dict(type='Recognizer3D', backbone=backbone,
                                  cls_head=head))
    options['cls_head'] = head
    options['backbone'] = dict(backbone, pattern='causal', with_cp=True)
    model = build_model(options).eval()
    clips, samples = batch()
    losses = model.loss(clips, samples)
    losses['loss_feature'].backward()
    assert model.backbone.blocks[0].mlp_norm.weight.grad.abs().sum() > 0
    # The output of a block is the input of the next layer.
    net, features = model.backbone, []
    for layer in (net.blocks[1].attn_norm, net.norm):
        layer.register_forward_pre_hook(
            lambda module, args: features.append(args[0]))
    net(clips[:, 0])
    check_feature_loss(losses, features, outputs(
        model._teacher.on('cpu'), clips)[0])


@pytest.mark.parametrize('change, error', [
    (dict(feature_loss=None, logit_loss=None), 'a feature_loss or a logit_lo'),
    (dict(teacher_checkpoint='none.pth'), 'none.pth'),
    (dict(backbone=dict(num_layers=1)),
     r'same blocks.*got 1 \(encoder.blocks.0\) and 2 \(encoder'),
    (dict(backbone=dict(tubelet_frames=1)),
     r'features .* got \(2, 1, 17, 1, 16\) and \(2, 1, 9, 1, 16\)'),
    (dict(head=dict(num_classes=3), feature_loss=None),
     r'logits .* got \(2, 3\) and \(2, 5\)')], ids=str)
def test_rejects_wrong_options_and_different_shapes(teachers, change, error):
    with pytest.raises((ValueError, FileNotFoundError), match=error):
        build(**{'teacher_checkpoint': teachers['joint'][0], **change}
              ).train().loss(*batch())
