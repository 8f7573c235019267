# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import copy
import logging

import torch
from mmaction.registry import MODELS
from mmengine.logging import print_log
from torch import nn

from ..utils.checkpoint import load_checkpoint


class Teacher:
    """A frozen model that another one learns from, and that is no part of it.

    This is no ``nn.Module``: the student that has it as an attribute keeps
    the parameters, state dict and modes that it has without. It is built when
    it is first asked for, so that a student that is only tested needs no
    checkpoint of it. Copies of the student share it.

    Args:
        config: Of a recognizer.
        checkpoint: Its weights, loaded strictly. None leaves them as they are
            initialized, which teaches nothing, and warns.

    Attributes:
        model: The model, in evaluation mode; None until it is built.
    """

    def __init__(self, config: dict, checkpoint: str | None = None) -> None:
        self.config = config
        self.checkpoint = checkpoint
        self.model: nn.Module | None = None

    def build(self) -> nn.Module:
        """Build another one, without gradients, in the mode that it is in."""
        teacher = MODELS.build(copy.deepcopy(self.config))
        if self.checkpoint is None:
            teacher._dump_init_info = lambda *args: None
            teacher.init_weights()
            print_log(
                'the teacher has fresh weights, from which nothing is to be '
                'learned: set teacher_checkpoint',
                logger='current',
                level=logging.WARNING)
        else:
            load_checkpoint(teacher, self.checkpoint)
        return teacher.requires_grad_(False)

    def on(self, device: torch.device | str) -> nn.Module:
        """The model on a device, to which it is moved."""
        if self.model is None:
            self.model = self.build().eval()
        return self.model.to(device)

    def __deepcopy__(self, memo: dict) -> 'Teacher':
        return self
