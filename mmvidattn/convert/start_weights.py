# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Tensors to start training from, with an account of their source."""
import re
from collections.abc import Iterable, Mapping

from torch import Tensor

# The number of a block, of a transformer or an Inception.
_BLOCK = re.compile(r'(?<=\.)\d+(?=\.)|(?<=inception_)\d\w(?=[_/])')
_MANY = 40


class StartWeights(dict[str, Tensor]):
    """Tensors by name, and what became of those of the source.

    Args:
        tensors: Under our names, or those of a step on the way.
        account: Names by what became of them: 'used', 'folded', 'dropped',
            'set to zero', ... Each tensor of the source is in one of the
            first three; the others name what was added.
        notes: What the backbone must be built with, and the like.
    """

    def __init__(self, tensors: Mapping[str, Tensor],
                 account: dict[str, list[str]],
                 notes: Iterable[str] = ()) -> None:
        super().__init__(tensors)
        self.account = account
        self.notes = list(notes)

    def report(self) -> str:
        """The account in lines, with the numbers of blocks as ``*``.

        Where many names are left, those of a layer are one.
        """
        lines = []
        for what, names in self.account.items():
            if names:
                kinds = dict.fromkeys(_BLOCK.sub('*', n) for n in names)
                if len(kinds) > _MANY:
                    kinds = dict.fromkeys(
                        re.sub(r'\.\w+$', '.*', kind) for kind in kinds)
                lines.append(f'{what} {len(names)}: {", ".join(kinds)}')
        return '\n'.join([*lines, *self.notes])
