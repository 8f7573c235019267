# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch
from mmaction.models.recognizers import Recognizer3D
from mmaction.registry import MODELS
from mmengine.logging import MessageHub
from torch import Tensor, nn

from ..backbones.pretrained import load_matching
from ..layers import VideoTransformerBlock
from ..utils.arguments import Natural, NotNegative, check_arguments
from .teacher import Teacher


@MODELS.register_module()
@check_arguments
class DistilledRecognizer3D(Recognizer3D):
    """Recognizer that replaces a teacher's attention by distillation.

    The teacher is a trained XViT or ViViT. The student has the same backbone
    and head with another attention, such as linear attention with feature
    fixation. The student

    1. starts from the teacher's tensors with the same name and shape, and logs
       which tensors match;
    2. in the first ``distill_epochs``, learns the teacher's block outputs and
       logits, on the same augmented clips;
    3. then learns only from the labels, without running the teacher.

    The teacher is frozen and in evaluation mode. A checkpoint of the student
    does not contain it, and therefore loads strictly into a ``Recognizer3D``
    with the same backbone and head. In testing, the model is mmaction2's
    ``Recognizer3D``.

    During distillation, the outputs of all blocks of both models are in
    memory, even with ``with_cp`` of the backbone. The epoch comes from
    mmengine's ``MessageHub``, also in a resumed training. Training by
    iterations counts as a single epoch.

    Args:
        backbone: Config of the student's backbone.
        cls_head: Config of the student's head, whose scores are logits
            [B, K].
        teacher: Config of the teacher, a recognizer of the same clips.
        teacher_checkpoint: Checkpoint of the teacher; see :class:`Teacher`.
        start_from_teacher: Copy the teacher's tensors in :meth:`init_weights`.
            Defaults to True.
        distill_epochs: Number of epochs with distillation. With 0, the teacher
            is only used for the start weights. Defaults to None, all epochs.
        feature_loss: Config of the loss of the block outputs, averaged over
            the blocks, or None.
        logit_loss: Config of the loss of the logits, or None.
        task_loss_weight: Factor of the head's losses during distillation.
            Defaults to 0.
        **kwargs: Arguments of ``Recognizer3D``.

    Raises:
        ValueError: If there are epochs of distillation without a loss, or if
            the backbone has no
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
                'logit_loss, got None for both; set distill_epochs=0 to use '
                'neither')
        self.start_from_teacher = start_from_teacher
        self.distill_epochs = distill_epochs
        self.task_loss_weight = task_loss_weight
        self.feature_loss = feature_loss and MODELS.build(feature_loss)
        self.logit_loss = logit_loss and MODELS.build(logit_loss)
        self._teacher = Teacher(teacher, teacher_checkpoint)
        if self.feature_loss is not None and not _blocks(self.backbone):
            raise ValueError(
                f'feature_loss compares blocks, but {type(self.backbone)} '
                'lacks VideoTransformerBlocks; set feature_loss=None to '
                'compare only logits')

    def init_weights(self) -> None:
        """Initialize all weights, then copy the teacher's weights."""
        super().init_weights()
        if self.start_from_teacher:
            source = self._teacher.checkpoint or 'an untrained teacher'
            load_matching(self, self._teacher.on('cpu').state_dict(), source)

    def loss(self, inputs: Tensor, data_samples: list,
             **kwargs) -> dict[str, Tensor]:
        """Compute the losses of ``BaseRecognizer``.

        During distillation, these are multiplied by ``task_loss_weight``, and
        ``loss_feature`` and ``loss_logit`` are added.

        Raises:
            ValueError: If the blocks or the logits of teacher and student
                have different shapes.
        """
        epoch = MessageHub.get_current_instance().get_info('epoch', 0)
        if self.distill_epochs is not None and epoch >= self.distill_epochs:
            return super().loss(inputs, data_samples, **kwargs)
        with _block_outputs(self.backbone) as features:
            feats, head_kwargs = self.extract_feat(
                inputs, data_samples=data_samples)
        logits = self.cls_head(feats, **head_kwargs)
        losses = {
            **self.cls_head.loss_by_feat(logits, data_samples),
            **head_kwargs['loss_aux']
        }
        # Keep losses also with factor 0, because distributed training fails if
        # a parameter has no gradient.
        losses = {
            name: self.task_loss_weight * x if 'loss' in name else x
            for name, x in losses.items()
        }
        teacher = self._teacher.on(inputs.device)
        with torch.no_grad(), _block_outputs(teacher.backbone) as targets:
            target_logits, _ = teacher.extract_feat(inputs, stage='head')
        if self.feature_loss is not None:
            if features.keys() != targets.keys():
                raise ValueError(
                    'feature_loss needs the same blocks in student and '
                    f'teacher, got {len(features)} ({", ".join(features)}) '
                    f'and {len(targets)} ({", ".join(targets)}); set '
                    'feature_loss=None to compare only logits')
            losses['loss_feature'] = torch.stack([
                self.feature_loss(x, targets[name])
                for name, x in features.items()
            ]).mean()
        if self.logit_loss is not None:
            losses['loss_logit'] = self.logit_loss(logits, target_logits)
        return losses

def _blocks(backbone: nn.Module) -> dict[str, nn.Module]:
    return {name: module for name, module in backbone.named_modules()
            if isinstance(module, VideoTransformerBlock)}


@contextmanager
def _block_outputs(backbone: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect the outputs of all blocks in this context, by block name.

    Outputs recomputed in a backward pass are not included.
    """
    outputs: dict[str, Tensor] = {}
    blocks = _blocks(backbone)

    def keep(name: str, module: nn.Module, args: tuple, y: Tensor) -> None:
        outputs[name] = y

    def keep_causal(name: str, block: nn.Module, run: Callable,
                    *args) -> tuple[Tensor, dict[str, Tensor]]:
        y, state = run(*args)
        if 'forward_causal' in vars(block):
            outputs[name] = y
        return y, state

    handles = []
    for name, block in blocks.items():
        handles.append(block.register_forward_hook(partial(keep, name)))
        # Causal backbones call this method, for which torch has no hooks.
        block.forward_causal = partial(keep_causal, name, block,
                                       block.forward_causal)
    try:
        yield outputs
    finally:
        for handle, block in zip(handles, blocks.values()):
            handle.remove()
            del block.forward_causal
