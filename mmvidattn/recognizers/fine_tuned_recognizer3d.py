# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from typing import Any

from mmaction.models import Recognizer3D
from mmaction.registry import MODELS
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from ..layers.lora import add_lora
from ..utils.arguments import check_arguments


@MODELS.register_module()
@check_arguments
class FineTunedRecognizer3D(Recognizer3D):
    """A ``Recognizer3D`` of which only a part is trained.

    The names of its tensors are those of ``Recognizer3D``, and checkpoints of
    either load into the other; those of a training with LoRA have its tensors
    in addition, which :func:`mmvidattn.get_model` merges.

    What is frozen stays in evaluation mode while the rest trains: it drops
    nothing, and its running statistics stay. With LoRA these statistics stay
    in all of the backbone.

    Args:
        freeze: ``'backbone'``, to train the head alone (where that is one
            linear layer: a linear probe); or a number n, to freeze what comes
            before the blocks and the first n blocks.
        lora: Arguments of :func:`mmvidattn.layers.add_lora`, such as
            ``dict(rank=8)``: of the backbone its updates alone are trained.
        **kwargs: Those of ``Recognizer3D``.

    Raises:
        ValueError: If both are given; or if ``freeze`` is neither, or more
            blocks than there are, or the backbone does not tell its layers.
    """

    def __init__(self, *args: Any, freeze: str | int | None = None,
                 lora: dict | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if lora is not None and freeze is not None:
            raise ValueError('lora freezes the backbone but for its updates; '
                             f'got freeze={freeze!r} as well')
        self._frozen: list[nn.Module] = []
        if lora is not None:
            self.backbone.requires_grad_(False)
            for name in add_lora(self.backbone, **lora):
                module = self.backbone.get_submodule(name)
                module.lora_down.requires_grad_(True)
                module.lora_up.requires_grad_(True)
            self._frozen = [module for module in self.backbone.modules()
                            if isinstance(module, _NormBase)]
        elif freeze == 'backbone':
            self.backbone.requires_grad_(False)
            self._frozen = [self.backbone]
        elif freeze is not None:
            self._freeze_blocks(freeze)

    def _freeze_blocks(self, number: int) -> None:
        backbone = self.backbone
        if not hasattr(backbone, 'get_layer_depth'):
            raise ValueError(
                f'freeze={number!r} needs a backbone with get_layer_depth, '
                f'and {type(backbone).__name__} has none; freeze="backbone" '
                'works with any')
        depths = {name: backbone.get_layer_depth(name)
                  for name, _ in backbone.named_parameters()}
        # The first depth comes before the blocks, the last one after them.
        most = next(iter(depths.values()))[1] - 2
        if isinstance(number, bool) or not isinstance(
                number, int) or not 0 <= number <= most:
            raise ValueError(
                f"freeze must be 'backbone' or a number from 0 to {most}, the "
                f'blocks of this {type(backbone).__name__}, got {number!r}')
        for name, parameter in backbone.named_parameters():
            if depths[name][0] <= number:
                parameter.requires_grad_(False)
        self._frozen = [
            module for module in backbone.modules()
            if (own := [*module.parameters()])
            and not any(parameter.requires_grad for parameter in own)]

    def train(self, mode: bool = True) -> nn.Module:
        """Set the mode, but for what is frozen."""
        super().train(mode)
        for module in self._frozen:
            module.eval()
        return self
