# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmaction.registry import OPTIM_WRAPPER_CONSTRUCTORS
from mmengine.optim import DefaultOptimWrapperConstructor
from torch import nn

from ..utils.arguments import check_arguments
from ..utils.modules import unwrap


@OPTIM_WRAPPER_CONSTRUCTORS.register_module()
@check_arguments
class LearningRateDecayOptimWrapperConstructor(DefaultOptimWrapperConstructor):
    """Use lower learning rates for layers nearer to the input.

    The backbone must have ``get_layer_depth(name, prefix)``, which returns the
    depth of a parameter and the number of depths, as in mmpretrain. All clip
    backbones of this package have it. mmaction2's
    ``LearningRateDecayOptimizerConstructor`` has the same options, but
    supports only two backbones.

    The learning rate of a parameter of depth d of D is multiplied by
    ``decay_rate ** (D - 1 - d)``; the head has depth D - 1. Biases and other
    one-dimensional parameters have no weight decay.

    Args:
        optim_wrapper_cfg: Config of the optimizer wrapper.
        paramwise_cfg: ``dict(decay_rate=...)``, with a rate in (0, 1].
    """

    def __init__(self, optim_wrapper_cfg: dict,
                 paramwise_cfg: dict | None = None) -> None:
        super().__init__(optim_wrapper_cfg, paramwise_cfg)
        rate = self.paramwise_cfg.get('decay_rate')
        if set(self.paramwise_cfg) != {'decay_rate'} or not 0 < rate <= 1:
            raise ValueError(
                'paramwise_cfg must be dict(decay_rate=...), with a number in '
                f'(0, 1], got {paramwise_cfg}')

    def add_params(self, params: list[dict], module: nn.Module,
                   **kwargs) -> None:
        """Add all trainable parameters, in groups by depth and weight decay.

        Raises:
            ValueError: If the model's backbone lacks ``get_layer_depth``.
        """
        module = unwrap(module)
        backbone = getattr(module, 'backbone', None)
        if not hasattr(backbone, 'get_layer_depth'):
            raise ValueError(
                f'{type(self).__name__} needs a backbone with '
                f'get_layer_depth(name, prefix), got {type(backbone).__name__}'
            )
        groups = {}
        for name, param in module.named_parameters():
            if not param.requires_grad:
                continue
            depth, num_depths = backbone.get_layer_depth(name, 'backbone.')
            if not name.startswith('backbone.'):
                depth = num_depths - 1
            with_decay = param.ndim > 1 and not name.endswith('.bias')
            scale = self.paramwise_cfg['decay_rate']**(num_depths - 1 - depth)
            group = groups.setdefault(
                (depth, with_decay),
                dict(params=[], param_names=[], lr_scale=scale,
                     lr=scale * self.base_lr,
                     weight_decay=self.base_wd if with_decay else 0.))
            group['params'].append(param)
            group['param_names'].append(name)
        params.extend(groups.values())
