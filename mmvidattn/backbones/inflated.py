# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A network of images out of timm or mmpretrain, turned into one of videos."""
from typing import Any

from mmaction.registry import MODELS
from mmengine.logging import print_log
from mmengine.model import BaseModule
from torch import Tensor

from ..layers.temporal import inflate, inflated_modules
from ..utils.arguments import Count, check_arguments
from .base import BaseBackbone
from .pretrained import load_matching, read_pretrained


@MODELS.register_module()
@check_arguments
class InflatedBackbone(BaseBackbone):
    """A transformer of images with leap attention and periodic shift.

    See :func:`mmvidattn.layers.temporal.inflate`. The network has its
    classifier taken away and its weights under ``model.``.

    Args:
        model: 'timm.NAME' for ``timm.create_model(NAME)``, or the config of
            a backbone in mmpretrain's registry,
            ``dict(type='mmpretrain.VisionTransformer', ...)``.
        num_frames: Frames T of a clip.
        model_cfg: Options of timm's model, such as ``img_size`` and
            ``pretrained``; only with 'timm.NAME'.
        with_cp: Recompute blocks in the backward pass, by the switch that
            timm's models have.
        init_cfg: ``dict(type='Pretrained', checkpoint=FILE)`` starts from
            the tensors of FILE that match those of the network in name and
            shape.
        **kwargs: Of ``inflate``: ``pyramid``, ``shift``, ``attention``,
            ``shift_fraction``, ``shift_first``, ``skip``.

    Raises:
        ValueError: If there is no such model, ``inflate`` refuses it, or it
            has no switch for ``with_cp``.
        ImportError: If timm is not installed.
    """

    def __init__(self,
                 model: str | dict,
                 num_frames: Count = 8,
                 model_cfg: dict[str, Any] | None = None,
                 with_cp: bool = False,
                 init_cfg: dict | None = None,
                 **kwargs) -> None:
        super().__init__(num_frames, with_cp, init_cfg=init_cfg)
        self.model = inflate(
            _build(model, model_cfg or {}), num_frames, **kwargs)
        if with_cp:
            if not hasattr(self.model, 'set_grad_checkpointing'):
                raise ValueError(
                    'with_cp needs a model with set_grad_checkpointing, as '
                    'those of timm; the config of another one may have an '
                    f'option of its own. Got {type(self.model).__name__}')
            self.model.set_grad_checkpointing(True)

    def forward(self, x: Tensor) -> Tensor:
        """Clips [B, C, T, H, W] to frame features [B, D, T] or
        [B, D, T, H', W'].

        Raises:
            ValueError: If the clips have not ``num_frames`` frames.
        """
        x = self.model(self.to_frames(x))
        return self.to_clips(x[-1] if isinstance(x, (tuple, list)) else x)

    def layer_groups(self) -> list[list[str]]:
        """See :class:`BaseBackbone`; a block is one of inflated attention.

        Parameters that stand between two blocks join the one before.
        """
        blocks = [
            f'model.{name.rpartition(".")[0] or name}.'
            for name in inflated_modules(self.model)
        ]
        groups, last = [[]], None
        for name, _ in self.named_parameters():
            block = next((b for b in blocks if name.startswith(b)), None)
            is_behind = block is None and last == blocks[-1]
            if block != last and (block is not None or is_behind):
                groups.append([])
            groups[-1].append(name)
            last = block if block is not None or is_behind else last
        return groups

    def init_weights(self) -> None:
        """From ``init_cfg``; else the weights stay what the model has.

        A model of mmpretrain is first initialized as its config says; one of
        timm has been when it was built.
        """
        if isinstance(self.model, BaseModule):
            self.model.init_weights()
        if self.init_cfg is None:
            return
        state_dict, path = read_pretrained(self)
        print_log(load_matching(self.model, state_dict, path), 'current')


def _build(model: str | dict, model_cfg: dict[str, Any]) -> Any:
    if isinstance(model, dict):
        if model_cfg:
            raise ValueError("model_cfg belongs to model='timm.NAME'; a dict "
                             f'has its options itself, got {model_cfg}')
        return MODELS.build(model)
    library, _, name = model.partition('.')
    if library != 'timm' or not name:
        raise ValueError("model must be 'timm.NAME' or a config, got "
                         f'{model!r}')
    try:
        import timm
    except ImportError as error:
        raise ImportError(f'{model} needs timm: pip install timm') from error
    if not timm.is_model(name):
        close = timm.list_models(f'*{name.split("_")[0]}*')[:5]
        raise ValueError(f'timm has no model {name!r}'
                         + (f'; it has {", ".join(close)}, ...'
                            if close else ''))
    return timm.create_model(name, num_classes=0, **model_cfg)
