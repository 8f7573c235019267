# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Parts of all converters: rules for names, and start weights."""
import re
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

# Number of a transformer block or an Inception block.
_BLOCK = re.compile(r'(?<=\.)\d+(?=\.)|(?<=inception_)\d\w(?=[_/])')
_MANY = 40


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
        ValueError: If a new name is not valid.
    """
    out = {}
    for name, value in state_dict.items():
        if name.startswith(unused):
            continue
        new = rename(name, rules)
        if not re.fullmatch(valid, new):
            raise ValueError(f'{name} is not a tensor of {model}')
        out[new] = value
    return out


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


class StartWeights(dict[str, Tensor]):
    """Tensors by name, with an account of the source's tensors.

    Args:
        tensors: Converted tensors.
        account: Lists of tensor names. 'used', 'folded' and 'dropped' together
            list all tensors of the source. Other keys, such as 'set to zero',
            list added tensors.
        notes: Remarks, such as required options of the backbone.
    """

    def __init__(self, tensors: Mapping[str, Tensor],
                 account: dict[str, list[str]],
                 notes: Iterable[str] = ()) -> None:
        super().__init__(tensors)
        self.account = account
        self.notes = list(notes)

    def report(self) -> str:
        """Format the account, with block numbers replaced by ``*``.

        If many names remain, tensors of the same layer are merged.
        """
        lines = []
        for use, names in self.account.items():
            if names:
                kinds = dict.fromkeys(_BLOCK.sub('*', n) for n in names)
                if len(kinds) > _MANY:
                    kinds = dict.fromkeys(
                        re.sub(r'\.\w+$', '.*', kind) for kind in kinds)
                lines.append(f'{use} {len(names)}: {", ".join(kinds)}')
        return '\n'.join([*lines, *self.notes])
