# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
import torch.nn.functional as F
from mmaction.models.recognizers import Recognizer3D
from mmaction.registry import MODELS
from torch import Tensor

from ..heads.token_label_head import classify_tokens
from ..losses.token_label_loss import soft_token_labels
from ..utils.arguments import Count, check_arguments
from .teacher import Teacher


@MODELS.register_module()
@check_arguments
class TokenLabelRecognizer3D(Recognizer3D):
    """Recognizer that learns a label for every token from a teacher.

    Token labeling of `DualFormer <https://arxiv.org/abs/2112.04674>`_, Sec.
    B.1: in training, a larger, frozen teacher gets the same augmented clips.
    Its classifier is applied to every token, and gives soft labels for the
    tokens of the student. In testing, the model is mmaction2's
    ``Recognizer3D``.

    Differs from the released code:

    - The teacher stays in eval mode, and is not part of the parameters, state
      dict and checkpoints. (As released, it is in train mode after the first
      call of ``train()``, with dropout and batch statistics, and is saved
      with the student.)
    - The teacher's checkpoint is loaded strictly. (As released, a checkpoint
      with the usual wrapper is silently not loaded.)
    - If the student's tokens have fewer frames, adjacent frames of the teacher
      are averaged. (The released code averages frames that are n apart, with n
      the student's number of frames.)

    ``as_released`` restores all differences except the loading.

    Args:
        backbone: Config of the student's backbone.
        cls_head: Config of a ``TokenLabelHead``.
        teacher: Config of the teacher, a recognizer with a head like
            ``I3DHead``.
        teacher_checkpoint: Checkpoint of the teacher; see :class:`Teacher`.
        topk: Number of classes in the label of a token; see
            :func:`mmvidattn.losses.soft_token_labels`. Defaults to 5.
        as_released: Treat the teacher like the released code. Defaults to
            False.
        **kwargs: Arguments of ``Recognizer3D``.
    """

    def __init__(self,
                 backbone: dict,
                 cls_head: dict,
                 teacher: dict,
                 teacher_checkpoint: str | None = None,
                 topk: Count = 5,
                 as_released: bool = False,
                 **kwargs) -> None:
        super().__init__(backbone=backbone, cls_head=cls_head, **kwargs)
        self.topk = topk
        self.as_released = as_released
        self._teacher = Teacher(teacher, teacher_checkpoint)
        if as_released:
            self.teacher = self._teacher.build()

    def loss(self, inputs: Tensor, data_samples: list,
             **kwargs) -> dict[str, Tensor]:
        """Compute the losses of ``BaseRecognizer``, and ``loss_token``."""
        feats, _ = self.extract_feat(inputs, data_samples=data_samples)
        labels = soft_token_labels(
            self.teacher_logits(inputs, feats.shape[2:]), self.topk)
        return self.cls_head.loss(feats, data_samples, token_labels=labels)

    @torch.no_grad()
    def teacher_logits(self, inputs: Tensor,
                       shape: tuple[int, int, int]) -> Tensor:
        """Compute the logits of the teacher for the tokens of the student.

        Args:
            inputs: Clips, [B, V, C, T, H, W].
            shape: Frames, rows and columns (t, h, w) of the student's tokens.

        Returns:
            [B V, t, h, w, K].
        """
        # Move the teacher, because the student may have moved.
        teacher = self.teacher if self.as_released else self._teacher.on(
            inputs.device)
        feats, _ = teacher.extract_feat(inputs)
        logits = classify_tokens(teacher.cls_head, feats).movedim(-1, 1)
        if self.as_released and logits.shape[2] != shape[0]:
            logits = logits.unflatten(2, (-1, shape[0])).mean(2)
        if logits.shape[2:] != shape:
            logits = F.adaptive_avg_pool3d(logits, shape)
        return logits.movedim(1, -1)
