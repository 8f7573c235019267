# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Start weights for training, with an account of the source's tensors."""
import re
from collections.abc import Iterable, Mapping

from torch import Tensor

# Number of a transformer block or an Inception block.
_BLOCK = re.compile(r'(?<=\.)\d+(?=\.)|(?<=inception_)\d\w(?=[_/])')
_MANY = 40


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
