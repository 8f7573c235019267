# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import copy
import logging

import torch
from mmaction.registry import MODELS
from mmengine.logging import print_log
from torch import nn

from ..utils.checkpoint import load_checkpoint


class Teacher:
    """Frozen model (teacher) whose outputs another model (student) learns.

    It is not an ``nn.Module``, so that it is not in the parameters and the
    state dict of the student, and does not change its mode with the student.
    The model is built on first use, so testing the student does not need the
    teacher's checkpoint. Copies of the student share the teacher.

    Args:
        config: Config of a recognizer.
        checkpoint: Checkpoint of the recognizer, loaded strictly. Defaults to
            None, untrained weights with a warning.

    Attributes:
        model: The model, in evaluation mode; None until it is built.
    """

    def __init__(self, config: dict, checkpoint: str | None = None) -> None:
        self.config = config
        self.checkpoint = checkpoint
        self.model: nn.Module | None = None

    def build(self) -> nn.Module:
        """Build a new model without gradients, in its initial mode."""
        teacher = MODELS.build(copy.deepcopy(self.config))
        if self.checkpoint is None:
            teacher._dump_init_info = lambda *args: None
            teacher.init_weights()
            print_log(
                'the teacher has untrained weights: set teacher_checkpoint',
                logger='current',
                level=logging.WARNING)
        else:
            load_checkpoint(teacher, self.checkpoint)
        return teacher.requires_grad_(False)

    def on(self, device: torch.device | str) -> nn.Module:
        """Return the model after moving it to a device."""
        if self.model is None:
            self.model = self.build().eval()
        return self.model.to(device)

    def __deepcopy__(self, memo: dict) -> 'Teacher':
        return self
