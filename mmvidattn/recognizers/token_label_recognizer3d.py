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
    """A recognizer that learns every token's label from a teacher.

    Token labeling of `DualFormer <https://arxiv.org/abs/2112.04674>`_, Sec.
    B.1: in training a larger model, frozen, sees the same augmented clips;
    its classifier, applied to every token, gives the soft labels of the
    student's tokens. In testing this is mmaction2's ``Recognizer3D``.

    Differs from the released code: the teacher stays in eval mode and is no
    part of the model's parameters, state dict and checkpoints (the released
    code's is in train mode after the first call of ``train()``, with dropout
    and batch statistics, and is saved with the student); its checkpoint is
    loaded strictly (the released code's silently not, if it has the usual
    wrapper); and where the student has fewer frames of tokens, neighboring
    frames of the teacher's are averaged (the released code's: frames as far
    apart as the student has). All but the loading can be had as released.

    Args:
        backbone: Of the student.
        cls_head: A ``TokenLabelHead``.
        teacher: Config of the teacher, a recognizer with a head of the form
            of ``I3DHead``.
        teacher_checkpoint: Its weights. None leaves them as they are
            initialized, which teaches nothing, and warns.
        label_store: Folder of labels that ``tools/data/token_labels.py``
            wrote, in the teacher's place. The samples must tell ``filename``
            and ``view``: see :class:`mmvidattn.datasets.transforms.FixedViews`.
        topk: Classes of a token that a label has: see
            :func:`mmvidattn.losses.soft_token_labels`.
        as_released: Treat the teacher as the released code does.
        **kwargs: Of ``Recognizer3D``.

    Raises:
        ValueError: If there is neither a teacher nor a store, or a store is
            to be treated as released.
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
            raise ValueError('as_released is of a teacher, not of a '
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
        """See ``BaseRecognizer``; with ``loss_token``."""
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
        """Compute the logits of a teacher for the tokens of a student.

        Args:
            inputs: Clips, [B, V, C, T, H, W].
            shape: Frames, rows and columns (t, h, w) of the student's tokens.

        Returns:
            [B V, t, h, w, K].
        """
        if self._teacher is None:
            raise ValueError('the labels come from a label_store; there is '
                             'no teacher')
        # A model may have been moved since.
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
        """Labels from the store, [B, t, h, w, K].

        Raises:
            ValueError: If the samples do not tell which they are, or the
                store has not those, or of another grid of tokens.
        """
        labels = []
        for sample in data_samples:
            if 'filename' not in sample or 'view' not in sample:
                raise ValueError(
                    'samples of a label_store must tell filename and view: '
                    'use FixedViews, and name both in meta_keys of '
                    'PackActionInputs')
            values, classes = self._store.read(sample.filename, sample.view)
            if values.shape[:3] != shape:
                raise ValueError(
                    f'the labels in {self._store_folder} are of '
                    f'{tuple(values.shape[:3])} tokens, the clip has '
                    f'{tuple(shape)}')
            logits = values.new_zeros(*shape, self.cls_head.num_classes)
            labels.append(logits.scatter(-1, classes, values))
        # The others are zeros, as in soft_token_labels.
        return torch.stack(labels).softmax(-1)

    @cached_property
    def _store(self) -> TokenLabelStore:
        return TokenLabelStore(self._store_folder)
