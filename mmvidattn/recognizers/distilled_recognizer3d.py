# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch
from mmaction.models.recognizers import Recognizer3D
from mmaction.registry import MODELS
from mmengine.logging import MessageHub, print_log
from torch import Tensor, nn

from ..backbones.pretrained import load_matching
from ..layers import VideoTransformerBlock
from ..utils.arguments import Natural, NotNegative, check_arguments
from .teacher import Teacher


@MODELS.register_module()
@check_arguments
class DistilledRecognizer3D(Recognizer3D):
    """A recognizer that takes over what a trained one has learned.

    It is meant for a change of the attention: the teacher is a trained XViT
    or ViViT, and backbone and head here, the student, are the same with
    another attention, such as linear attention with feature fixation. The
    student

    1. starts from the tensors of the teacher that fit in name and shape, and
       says which did, which of its own are new (the gates of feature
       fixation) and which of the teacher's are left;
    2. learns, in the first ``distill_epochs``, the output of each of the
       teacher's blocks and its logits, of the same augmented clips;
    3. then learns the task alone, and the teacher costs nothing more.

    The teacher is frozen, in evaluation mode, and no part of the parameters,
    state dict and checkpoints: they are those of the ``Recognizer3D`` with
    the same backbone and head, and load into it strictly. In testing this is
    mmaction2's ``Recognizer3D``.

    In the steps of distillation the blocks' outputs of both are in memory,
    also with ``with_cp`` of the backbone. The epoch is that of mmengine's
    ``MessageHub``, where every training by epochs has it, also a resumed one;
    to a training by iterations all of it is the first epoch.

    Args:
        backbone: Of the student.
        cls_head: Of the student; its scores are logits [B, K].
        teacher: Config of the teacher, a recognizer that takes the same
            clips.
        teacher_checkpoint: Its weights, loaded strictly. None leaves them as
            they are initialized, which teaches nothing, and warns.
        start_from_teacher: Whether the student starts from the teacher's
            tensors, in :meth:`init_weights`.
        distill_epochs: Epochs of distillation: all of them with None; with 0
            the student only starts from the teacher.
        feature_loss: Config of the loss of each block's output, of which the
            mean over the blocks is taken; None for none.
        logit_loss: Config of the loss of the logits; None for none.
        task_loss_weight: Factor of the head's own losses in the epochs of
            distillation.
        **kwargs: Of ``Recognizer3D``.

    Raises:
        ValueError: If an option is out of its range; if there are epochs of
            distillation and no loss for them; or if the backbone has no
            :class:`mmvidattn.layers.VideoTransformerBlock` to compare.
    """

    def __init__(self,
                 backbone: dict,
                 cls_head: dict,
                 teacher: dict,
                 teacher_checkpoint: str | None = None,
                 *,
                 start_from_teacher: bool = True,
                 distill_epochs: Natural | None = None,
                 feature_loss: dict | None = dict(
                     type='FeatureDistillationLoss'),
                 logit_loss: dict | None = dict(type='LogitDistillationLoss'),
                 task_loss_weight: NotNegative = 0.,
                 **kwargs) -> None:
        super().__init__(backbone=backbone, cls_head=cls_head, **kwargs)
        if distill_epochs != 0 and feature_loss is None and (
                logit_loss is None):
            raise ValueError(
                f'distill_epochs={distill_epochs} needs a feature_loss or a '
                'logit_loss, got None for both; distill_epochs=0 is for none')
        self.start_from_teacher = start_from_teacher
        self.distill_epochs = distill_epochs
        self.task_loss_weight = task_loss_weight
        self.feature_loss = feature_loss and MODELS.build(feature_loss)
        self.logit_loss = logit_loss and MODELS.build(logit_loss)
        self._teacher = Teacher(teacher, teacher_checkpoint)
        if self.feature_loss is not None and not _blocks(self.backbone):
            raise ValueError(
                f'feature_loss compares blocks, and {type(self.backbone)} '
                'has no VideoTransformerBlock; feature_loss=None compares '
                'logits alone')

    def init_weights(self) -> None:
        """Initialize afresh, then from the teacher."""
        super().init_weights()
        if self.start_from_teacher:
            source = self._teacher.checkpoint or 'a fresh teacher'
            print_log(
                load_matching(self, self._teacher.on('cpu').state_dict(),
                              source), 'current')

    def loss(self, inputs: Tensor, data_samples: list,
             **kwargs) -> dict[str, Tensor]:
        """See ``BaseRecognizer``.

        In the epochs of distillation with ``loss_feature`` and
        ``loss_logit``, and the head's losses times ``task_loss_weight``.

        Raises:
            ValueError: If the blocks or the logits of teacher and student
                have different layouts.
        """
        if not self._is_distilling():
            return super().loss(inputs, data_samples, **kwargs)
        with _block_outputs(self.backbone) as features:
            feats, head_kwargs = self.extract_feat(
                inputs, data_samples=data_samples)
        logits = self.cls_head(feats, **head_kwargs)
        losses = {
            **self.cls_head.loss_by_feat(logits, data_samples),
            **head_kwargs['loss_aux']
        }
        # A factor of 0 leaves gradients of zero, where None would stop a
        # distributed training.
        losses = {
            name: self.task_loss_weight * x if 'loss' in name else x
            for name, x in losses.items()
        }
        wanted, wanted_logits = self._ask_teacher(inputs)
        if self.feature_loss is not None:
            _check_layouts(features, wanted)
            losses['loss_feature'] = torch.stack([
                self.feature_loss(x, wanted[name])
                for name, x in features.items()
            ]).mean()
        if self.logit_loss is not None:
            losses['loss_logit'] = self.logit_loss(logits, wanted_logits)
        return losses

    def _is_distilling(self) -> bool:
        epoch = MessageHub.get_current_instance().get_info('epoch', 0)
        return self.distill_epochs is None or epoch < self.distill_epochs

    @torch.no_grad()
    def _ask_teacher(self, inputs: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """The blocks' outputs by name, and the logits."""
        teacher = self._teacher.on(inputs.device)
        with _block_outputs(teacher.backbone) as features:
            logits, _ = teacher.extract_feat(inputs, stage='head')
        return features, logits


def _blocks(backbone: nn.Module) -> dict[str, nn.Module]:
    return {
        name: module
        for name, module in backbone.named_modules()
        if isinstance(module, VideoTransformerBlock)
    }


@contextmanager
def _block_outputs(backbone: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect what each block returns in this context, by its name.

    What a block computes again in a backward pass is not within it.
    """
    outputs: dict[str, Tensor] = {}

    def keep(name: str, module: nn.Module, args: tuple, y: Tensor) -> None:
        outputs[name] = y

    handles = [
        block.register_forward_hook(partial(keep, name))
        for name, block in _blocks(backbone).items()
    ]
    try:
        yield outputs
    finally:
        for handle in handles:
            handle.remove()


def _check_layouts(student: dict[str, Tensor],
                   teacher: dict[str, Tensor]) -> None:
    if student.keys() != teacher.keys():
        raise ValueError(
            'feature_loss needs the same blocks in student and teacher, got '
            f'{len(student)} ({", ".join(student)}) and {len(teacher)} '
            f'({", ".join(teacher)}); feature_loss=None compares logits alone')
    for name, x in student.items():
        if x.shape != teacher[name].shape:
            raise ValueError(
                'feature_loss needs the same tokens and channels in student '
                f'and teacher, got for {name} {tuple(x.shape)} and '
                f'{tuple(teacher[name].shape)} [B, T, H, W, C]; '
                'feature_loss=None compares logits alone')
