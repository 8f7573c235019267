# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Video networks from image networks of timm or mmpretrain."""
from typing import Any

from mmaction.registry import MODELS
from mmengine.model import BaseModule
from torch import Tensor

from ..layers.temporal import inflate, inflated_modules
from ..utils.arguments import Count, check_arguments
from .base import BaseBackbone
from .pretrained import load_matching, read_pretrained


@MODELS.register_module()
@check_arguments
class InflatedBackbone(BaseBackbone):
    """Video network made of an image transformer of timm or mmpretrain.

    It runs the image transformer on each frame, with attention and shift
    across the frames, see :func:`mmvidattn.layers.temporal.inflate`. The
    classifier of the image transformer is removed, and the names of its
    parameters begin with ``model.``.

    Args:
        model: 'timm.NAME' for ``timm.create_model(NAME)``, or the config of
            a backbone in mmpretrain's registry,
            ``dict(type='mmpretrain.VisionTransformer', ...)``.
        num_frames: Clip length T. Defaults to 8.
        model_cfg: Options for ``timm.create_model``, such as ``img_size`` and
            ``pretrained``; only with 'timm.NAME'.
        with_cp: Recompute blocks in the backward pass; requires
            ``set_grad_checkpointing``, which timm's models have. Defaults to
            False.
        init_cfg: See :class:`BaseBackbone`; the tensors have the names of the
            image network.
        **kwargs: Options of ``inflate``: ``pyramid``, ``shift``,
            ``attention``, ``shift_fraction``, ``shift_first``, ``skip``.

    Raises:
        ValueError: If the model does not exist, ``inflate`` does not support
            it, or it does not support ``with_cp``.
        ImportError: If timm is not installed.
    """

    def __init__(self,
                 model: str | dict,
                 num_frames: Count = 8,
                 model_cfg: dict[str, Any] | None = None,
                 with_cp: bool = False,
                 init_cfg: dict | None = None,
                 **kwargs) -> None:
        super().__init__(num_frames, init_cfg=init_cfg)
        self.model = inflate(
            _build(model, model_cfg or {}), num_frames, **kwargs)
        self.with_cp = with_cp

    @property
    def with_cp(self) -> bool:
        return self._with_cp

    @with_cp.setter
    def with_cp(self, with_cp: bool) -> None:
        # BaseBackbone sets its default before the model exists.
        model = self._modules.get('model')
        if hasattr(model, 'set_grad_checkpointing'):
            model.set_grad_checkpointing(with_cp)
        elif with_cp:
            raise ValueError(
                'with_cp needs a model with set_grad_checkpointing, such as '
                f'a model of timm, got {type(model).__name__}; its config may '
                'have another option for it')
        self._with_cp = with_cp

    def forward(self, x: Tensor) -> Tensor:
        """Compute features [B, D, T] or [B, D, T, H', W'] of the frames.

        Raises:
            ValueError: If the clip length is not ``num_frames``.
        """
        x = self.model(self.to_frames(x))
        return self.to_clips(x[-1] if isinstance(x, (tuple, list)) else x)

    def layer_groups(self) -> list[list[str]]:
        """Return one depth for each block with an inflated attention.

        Parameters between two blocks belong to the earlier block.
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
        """Load ``init_cfg``, or keep the weights of the image network.

        timm initializes its models when it builds them; a model of mmpretrain
        is first initialized by its config.
        """
        if isinstance(self.model, BaseModule):
            self.model.init_weights()
        if self.init_cfg is None:
            return
        state_dict, path = read_pretrained(self)
        load_matching(self.model, state_dict, path)


def _build(model: str | dict, model_cfg: dict[str, Any]) -> Any:
    if isinstance(model, dict):
        if model_cfg:
            raise ValueError("model_cfg requires model='timm.NAME'; put the "
                             'options into the config of the model instead, '
                             f'got {model_cfg}')
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
