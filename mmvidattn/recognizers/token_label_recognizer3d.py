# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from functools import cached_property

import torch
import torch.nn.functional as F
from mmaction.models.recognizers import Recognizer3D
from mmaction.registry import MODELS
from torch import Tensor

from ..heads.token_label_head import classify_tokens
from ..losses.token_label_loss import soft_token_labels
from ..utils.arguments import Count, check_arguments
from .teacher import Teacher
from .token_label_store import TokenLabelStore


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
            ``I3DHead``. Defaults to None, which needs ``label_store``.
        teacher_checkpoint: Checkpoint of the teacher. Defaults to None,
            untrained weights with a warning.
        label_store: Folder of labels from ``tools/data/token_labels.py``,
            used instead of the teacher. The samples need ``filename`` and
            ``view``, from :class:`mmvidattn.datasets.transforms.FixedViews`.
        topk: Number of classes in the label of a token; see
            :func:`mmvidattn.losses.soft_token_labels`. Defaults to 5.
        as_released: Treat the teacher like the released code. Defaults to
            False.
        **kwargs: Arguments of ``Recognizer3D``.

    Raises:
        ValueError: If neither a teacher nor a store is given, or
            ``as_released`` is set with a store.
    """

    def __init__(self,
                 backbone: dict,
                 cls_head: dict,
                 teacher: dict | None = None,
                 teacher_checkpoint: str | None = None,
                 label_store: str | None = None,
                 topk: Count = 5,
                 as_released: bool = False,
                 **kwargs) -> None:
        super().__init__(backbone=backbone, cls_head=cls_head, **kwargs)
        if teacher is None and label_store is None:
            raise ValueError(
                'TokenLabelRecognizer3D needs a teacher or a label_store')
        if as_released and label_store is not None:
            raise ValueError('as_released needs a teacher instead of a '
                             f'label_store, got {label_store!r}')
        self.topk = topk
        self.as_released = as_released
        self._teacher = None if teacher is None else Teacher(
            teacher, teacher_checkpoint)
        self._store_folder = label_store
        if as_released:
            self.teacher = self._teacher.build()

    def loss(self, inputs: Tensor, data_samples: list,
             **kwargs) -> dict[str, Tensor]:
        """Compute the losses of ``BaseRecognizer``, and ``loss_token``."""
        feats, _ = self.extract_feat(inputs, data_samples=data_samples)
        shape = feats.shape[2:]
        if self._store_folder is not None:
            labels = self.stored_labels(data_samples, shape).to(feats.device)
        else:
            labels = soft_token_labels(
                self.teacher_logits(inputs, shape), self.topk)
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
        if self._teacher is None:
            raise ValueError('teacher_logits needs a teacher, and this model '
                             'reads its labels from a label_store; use '
                             'stored_labels')
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

    def stored_labels(self, data_samples: list,
                      shape: tuple[int, int, int]) -> Tensor:
        """Read labels [B, t, h, w, K] from the store.

        Raises:
            ValueError: If a sample lacks its file name and view, or the store
                lacks its labels or has them for another grid of tokens.
        """
        labels = []
        for sample in data_samples:
            if 'filename' not in sample or 'view' not in sample:
                raise ValueError(
                    'label_store needs filename and view of each sample: use '
                    'FixedViews, and add both to meta_keys of '
                    'PackActionInputs')
            values, classes = self._store.read(sample.filename, sample.view)
            if values.shape[:3] != shape:
                raise ValueError(
                    f'the labels in {self._store_folder} are for '
                    f'{tuple(values.shape[:3])} tokens, but the clip has '
                    f'{tuple(shape)}')
            logits = values.new_zeros(*shape, self.cls_head.num_classes)
            labels.append(logits.scatter(-1, classes, values))
        # All other logits are 0, like in soft_token_labels.
        return torch.stack(labels).softmax(-1)

    @cached_property
    def _store(self) -> TokenLabelStore:
        return TokenLabelStore(self._store_folder)
