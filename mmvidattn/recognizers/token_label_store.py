# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Token labels of a teacher, stored on disk."""
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..utils.files import map_numbers
from ..utils.lines import read_lines

SETTINGS, NAMES = 'settings.json', 'names.txt'
# Identify a video by its last folder and its name. Parent folders may differ
# between machines.
NAME_PARTS = 2


def key_of(filename: str | Path) -> str:
    """Return the name of a video in a store."""
    return '/'.join(Path(filename).parts[-NAME_PARTS:])


class TokenLabelStore:
    """Files with the highest logits of every token, for each view of a video.

    The folder contains ``settings.json``, ``names.txt`` and three arrays:
    ``values.npy`` float32 and ``classes.npy`` int32 [videos, views, T, H, W,
    k], ``done.npy`` bool [videos, views]. The arrays are memory-mapped, so
    labels are kept if the writing program is killed.

    Args:
        folder: Folder of a store from :meth:`create`.
        writable: Allow :meth:`write`. Defaults to False.

    Attributes:
        settings: Settings passed to :meth:`create`.

    Raises:
        FileNotFoundError: If the folder has no store.
    """

    def __init__(self, folder: str | Path, writable: bool = False) -> None:
        folder = Path(folder)
        if not (folder / SETTINGS).is_file():
            raise FileNotFoundError(
                f'no token labels in {folder}; tools/data/token_labels.py '
                'writes them')
        self.folder = folder
        self.settings = json.loads((folder / SETTINGS).read_text('utf-8'))
        names = read_lines(folder / NAMES)
        self._rows = {name: i for i, name in enumerate(names)}
        self.values, self.classes, self.done = (
            map_numbers(folder / f'{name}.npy', 'r+' if writable else 'r')
            for name in ('values', 'classes', 'done'))

    @classmethod
    def create(cls, folder: str | Path, filenames: Sequence[str | Path],
               num_views: int, shape: Sequence[int],
               **settings: Any) -> 'TokenLabelStore':
        """Create a store, or open an existing one with equal settings.

        Args:
            folder: Folder of the store.
            filenames: Paths of all videos.
            num_views: Number of views per video.
            shape: Grid of tokens and number of logits, (T, H, W, k).
            **settings: Other settings that the labels depend on, in plain
                types.

        Raises:
            ValueError: If two videos have the same folder and name, or the
                folder has a store with other settings.
        """
        folder = Path(folder)
        names = [key_of(name) for name in filenames]
        if len(set(names)) < len(names):
            twice = Counter(names).most_common(1)[0][0]
            raise ValueError(f'several videos have the name {twice}')
        settings = json.loads(
            json.dumps(
                dict(num_views=num_views, shape=list(shape), **settings)))
        if (folder / SETTINGS).is_file():
            store = cls(folder, writable=True)
            if store.settings != settings or list(store._rows) != names:
                changed = [
                    f'{name} {store.settings.get(name)!r}, now {value!r}'
                    for name, value in settings.items()
                    if store.settings.get(name) != value
                ]
                raise ValueError(
                    f'{folder} has labels with other settings: '
                    f'{", ".join(changed) or "other videos"}')
            return store
        folder.mkdir(parents=True, exist_ok=True)
        (folder / NAMES).write_text('\n'.join(names) + '\n', 'utf-8')
        for name, dtype, size in (('values', np.float32, shape),
                                  ('classes', np.int32, shape),
                                  ('done', np.bool_, ())):
            np.lib.format.open_memmap(
                folder / f'{name}.npy',
                mode='w+',
                dtype=dtype,
                shape=(len(names), num_views, *size)).flush()
        # Write this file last, because it marks a complete store.
        (folder / SETTINGS).write_text(
            json.dumps(settings, indent=2), 'utf-8')
        return cls(folder, writable=True)

    def missing(self) -> Iterator[tuple[int, int]]:
        """Yield (video, view) of all labels that are not written yet."""
        for video, view in np.argwhere(~np.asarray(self.done)).tolist():
            yield video, view

    def write(self, video: int, view: int, values: Tensor,
              classes: Tensor) -> None:
        """Write logits and their classes, [T, H, W, k] each."""
        self.values[video, view] = values.cpu().numpy()
        self.classes[video, view] = classes.cpu().numpy()
        self.values.flush()
        self.classes.flush()
        self.done[video, view] = True
        self.done.flush()

    def read(self, filename: str | Path, view: int) -> tuple[Tensor, Tensor]:
        """Read the logits and classes of a view of a video, [T, H, W, k] each.

        Raises:
            ValueError: If these labels are not written.
        """
        row = self._rows.get(key_of(filename))
        if row is None or not 0 <= view < self.done.shape[1] or \
                not self.done[row, view]:
            raise ValueError(
                f'{self.folder} lacks labels for view {view} of '
                f'{key_of(filename)}')
        return (torch.from_numpy(np.array(self.values[row, view])),
                torch.from_numpy(np.array(self.classes[row, view])).long())
