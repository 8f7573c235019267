# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Low-rank adaptation of the projections of an attention."""
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..utils.arguments import Count, Positive, check_arguments

# Names of the projections of attentions, here and in timm.
PROJECTIONS = 'qkv', 'q', 'k', 'v', 'kv', 'proj'


@check_arguments
def add_lora(model: nn.Module, rank: Count, alpha: Positive | None = None
             ) -> list[str]:
    """Add a low-rank update to every linear projection of an attention.

    This is the update of `LoRA: Low-Rank Adaptation of Large Language Models
    <https://arxiv.org/abs/2106.09685>`_, Sec. 4.1: ``W x + alpha / rank * B A
    x``. B starts at zero, so the outputs do not change at first. Existing
    tensors keep their names, and a checkpoint without LoRA can still be
    loaded. This function does not freeze parameters.

    Differs from the paper: keys and output projections are also updated, and
    there is no dropout before A.

    Args:
        model: Model whose ``nn.Linear`` modules named ``qkv``, ``q``, ``k``,
            ``v``, ``kv`` or ``proj`` get tensors ``lora_down`` [rank, in] and
            ``lora_up`` [out, rank].
        rank: Rank of the update.
        alpha: Scale of the update. Defaults to ``rank``.

    Returns:
        Names of the updated modules.

    Raises:
        ValueError: If the model has no such module, or already has LoRA.
    """
    alpha = rank if alpha is None else alpha
    modules = {name: module for name, module in model.named_modules()
               if isinstance(module, nn.Linear)
               and name.rpartition('.')[2] in PROJECTIONS}
    if not modules:
        raise ValueError(
            f'LoRA needs linear layers called {", ".join(PROJECTIONS)}, and '
            f'{type(model).__name__} has none')
    for name, module in modules.items():
        if hasattr(module, 'lora_down'):
            raise ValueError(f'{name} already has LoRA')
        like = dict(dtype=module.weight.dtype, device=module.weight.device)
        module.lora_scale = alpha / rank
        module.lora_down = nn.Parameter(
            torch.empty(rank, module.in_features, **like))
        module.lora_up = nn.Parameter(
            torch.zeros(module.out_features, rank, **like))
        nn.init.kaiming_uniform_(module.lora_down, a=5**0.5)
        module.lora_hooks = (
            module.register_forward_hook(_add_update),
            module._register_load_state_dict_pre_hook(
                _fill_in, with_module=True))
    return list(modules)


def merge_lora(model: nn.Module) -> list[str]:
    """Merge the updates of :func:`add_lora` into the weights, in place.

    Returns:
        Names of the merged modules.
    """
    modules = {name: module for name, module in model.named_modules()
               if hasattr(module, 'lora_hooks')}
    for module in modules.values():
        # Compute in float64, to round only once.
        update = module.lora_up.double() @ module.lora_down.double()
        weight = module.weight.double() + module.lora_scale * update
        module.weight.data.copy_(weight)
        for hook in module.lora_hooks:
            hook.remove()
        del (module.lora_up, module.lora_down, module.lora_scale,
             module.lora_hooks)
    return list(modules)


def _add_update(module: nn.Linear, args: tuple, output: Tensor) -> Tensor:
    down = F.linear(args[0], module.lora_down)
    return output + module.lora_scale * F.linear(down, module.lora_up)


def _fill_in(module: nn.Linear, state_dict: dict, prefix: str,
             *args) -> None:
    """Add initial updates to a checkpoint that has none."""
    up, down = f'{prefix}lora_up', f'{prefix}lora_down'
    if f'{prefix}weight' in state_dict and not {up, down} & {*state_dict}:
        state_dict[up] = torch.zeros_like(module.lora_up)
        state_dict[down] = module.lora_down.detach()
