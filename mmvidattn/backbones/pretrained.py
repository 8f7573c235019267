# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmengine.logging import print_log
from torch import Tensor, nn

from ..utils.checkpoint import load_state_dict_file, report_fit


def read_pretrained(model: nn.Module, prefix: str = 'backbone.'
                    ) -> tuple[dict[str, Tensor], str]:
    """Read the file in the ``init_cfg`` of a backbone or neck.

    Args:
        model: Model with ``init_cfg=dict(type='Pretrained',
            checkpoint=FILE)``, see :class:`BaseBackbone`.
        prefix: Prefix that tensor names may have, unless ``init_cfg`` has
            another. Defaults to 'backbone.'.

    Returns:
        Tensors with names without the prefix, and the path of the file.

    Raises:
        ValueError: If the type of ``init_cfg`` is not 'Pretrained', or the
            file does not have the format that ``init_cfg['source']`` names.
    """
    init_cfg = model.init_cfg
    if init_cfg.get('type') != 'Pretrained':
        raise ValueError(f'init_cfg of {type(model).__name__} must be '
                         "dict(type='Pretrained', checkpoint=...), got "
                         f'{init_cfg}')
    path = init_cfg['checkpoint']
    prefix = init_cfg.get('prefix', prefix)
    state_dict = load_state_dict_file(path)
    if 'source' in init_cfg:
        from ..convert import convert
        state_dict = convert(init_cfg['source'], state_dict)
    return {
        name.removeprefix(prefix): value
        for name, value in state_dict.items()
    }, path


def load_matching(model: nn.Module, state_dict: dict[str, Tensor],
                  source: str) -> None:
    """Load the tensors that match in name and shape, and log all mismatches.

    Args:
        model: Model to initialize.
        state_dict: Tensors by the model's names.
        source: Source of the tensors, for the log.

    Raises:
        ValueError: If no tensor matches.
    """
    expected = model.state_dict()
    matched = {
        name: value
        for name, value in state_dict.items()
        if name in expected and expected[name].shape == value.shape
    }
    if not matched:
        raise ValueError(
            f'{source}: none of its {len(state_dict)} tensors matches a '
            f'{type(model).__name__} in name and shape; expected '
            f'{", ".join(list(expected)[:3])}, ..., got '
            f'{", ".join(list(state_dict)[:3])}, ...')
    model.load_state_dict(matched, strict=False)
    print_log(
        f'{type(model).__name__} starts from {source}: '
        + report_fit(model, state_dict, limit=None),
        'current')
