# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Parts of all converters: rules for names, and remarks for the user."""
import re
import sys
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

# Number of a block.
_BLOCK = re.compile(r'(?<=\.)\d+(?=\.)')


def missing_tensor(model: str, tensor: str,
                   state_dict: dict[str, Tensor]) -> ValueError:
    """Return the error for a checkpoint without an expected tensor.

    Args:
        model: Published model, such as ``'a VideoMAE'``.
        tensor: Name or description of the missing tensor.
        state_dict: Tensors of the checkpoint.
    """
    return ValueError(f'not {model}: there is no {tensor} among '
                      f'{", ".join([*state_dict][:3])}, ...')


def rename(name: str, rules: Sequence[tuple[str, str]]) -> str:
    """Apply rules, each a regular expression and its replacement."""
    for pattern, replacement in rules:
        name = re.sub(pattern, replacement, name)
    return name


def named_by(names: Iterable[str],
             rules: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the names in the source, by their new names.

    Raises:
        ValueError: If two tensors get the same name.
    """
    named = {}
    for name in names:
        new = rename(name, rules)
        if new in named:
            raise ValueError(f'{name} and {named[new]} are both {new}')
        named[new] = name
    return named


def rename_all(state_dict: dict[str, Tensor],
               rules: Sequence[tuple[str, str]], model: str,
               unused: tuple[str, ...] = (),
               valid: str = r'(backbone|cls_head)\..*') -> dict[str, Tensor]:
    """Rename all tensors of a checkpoint.

    Args:
        state_dict: Tensors by published name.
        rules: Rules of :func:`rename`.
        model: Published model, for the error.
        unused: Prefixes of published names to leave out.
        valid: Regular expression of the new names.

    Raises:
        ValueError: If a new name is not valid, or two are the same.
    """
    named = named_by((name for name in state_dict
                      if not name.startswith(unused)), rules)
    for new, name in named.items():
        if not re.fullmatch(valid, new):
            raise ValueError(f'{name} is not a tensor of {model}')
    return {new: state_dict[name] for new, name in named.items()}


def join_qkv(tensors: dict[str, Tensor], parts: tuple[str, str, str],
             joined: str) -> dict[str, Tensor]:
    """Join the projections to Q, K and V into one.

    Args:
        tensors: Weights [C, C] and biases [C] of projections, and other
            tensors, by name.
        parts: Parts of the names that identify queries, keys and values.
        joined: Replacement of ``parts`` in the names of the results, [3 C, C]
            and [3 C].

    Raises:
        ValueError: If one of the three projections is missing.
    """
    out = {}
    for name, value in tensors.items():
        part = next((part for part in parts if part in name), None)
        if part is None:
            out[name] = value
            continue
        names = [name.replace(part, other) for other in parts]
        for other in names:
            if other not in tensors:
                raise ValueError(f'{name} needs {other}, which is missing')
        if name == names[0]:
            out[name.replace(part, joined)] = torch.cat(
                [tensors[other] for other in names])
    return out


def remark(text: str, names: Iterable[str] | None = None) -> None:
    """Print a remark on a conversion, or the names that it is about, if any.

    On stderr, to separate it from the output of programs.
    """
    if names is not None:
        names = [*names]
        kinds = dict.fromkeys(_BLOCK.sub('*', name) for name in names)
        text = f'{text} {len(names)}: {", ".join(kinds)}' if names else ''
    if text:
        print(text, file=sys.stderr)
