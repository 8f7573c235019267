# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Token labels of a teacher on disk, so that it runs once."""
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..utils.files import map_numbers
from ..utils.lines import read_lines

SETTINGS, NAMES = 'settings.json', 'names.txt'
# Folder and name of a video; the rest of its path differs by machine.
NAME_PARTS = 2


def key_of(filename: str | Path) -> str:
    """Under what name a store knows a video."""
    return '/'.join(Path(filename).parts[-NAME_PARTS:])


class TokenLabelStore:
    """The best logits of every token of some views of every video.

    A folder of ``settings.json``, ``names.txt`` and three arrays:
    ``values.npy`` float32 and ``classes.npy`` int32 [videos, views, T, H, W,
    k], ``done.npy`` bool [videos, views]. They are read where they lie; what
    has been written stays when the program that writes is killed.

    Args:
        folder: Of a store that :meth:`create` made.
        writable: Whether :meth:`write` is allowed.

    Attributes:
        settings: What :meth:`create` was told.

    Raises:
        FileNotFoundError: If there is no such store.
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
        """Make a store, or take up one that was made alike.

        Args:
            folder: Where.
            filenames: All videos.
            num_views: Views of each.
            shape: (T, H, W, k): the grid of tokens, and logits of each.
            **settings: What else the labels depend on, in plain types.

        Raises:
            ValueError: If two videos have the same folder and name, or the
                folder has a store that was made otherwise.
        """
        folder = Path(folder)
        names = [key_of(name) for name in filenames]
        if len(set(names)) < len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise ValueError(f'several videos are called {twice}')
        settings = json.loads(
            json.dumps(
                dict(num_views=num_views, shape=list(shape), **settings)))
        if (folder / SETTINGS).is_file():
            store = cls(folder, writable=True)
            if store.settings != settings or list(store._rows) != names:
                differ = [
                    f'{name} {store.settings.get(name)!r}, now {value!r}'
                    for name, value in settings.items()
                    if store.settings.get(name) != value
                ]
                raise ValueError(f'{folder} has labels of others: '
                                 f'{", ".join(differ) or "other videos"}')
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
        # Last of all: there is a store if this is there.
        (folder / SETTINGS).write_text(
            json.dumps(settings, indent=2), 'utf-8')
        return cls(folder, writable=True)

    def missing(self) -> Iterator[tuple[int, int]]:
        """Video and view of what is not written yet."""
        for video, view in np.argwhere(~np.asarray(self.done)).tolist():
            yield video, view

    def write(self, video: int, view: int, values: Tensor,
              classes: Tensor) -> None:
        """Logits and their classes, [T, H, W, k] each."""
        self.values[video, view] = values.cpu().numpy()
        self.classes[video, view] = classes.cpu().numpy()
        self.values.flush()
        self.classes.flush()
        self.done[video, view] = True
        self.done.flush()

    def read(self, filename: str | Path, view: int) -> tuple[Tensor, Tensor]:
        """Read the labels of a view of a video, [T, H, W, k] each.

        Raises:
            ValueError: If nothing was.
        """
        row = self._rows.get(key_of(filename))
        if row is None or not 0 <= view < self.done.shape[1] or \
                not self.done[row, view]:
            raise ValueError(
                f'{self.folder} has no labels of view {view} of '
                f'{key_of(filename)}')
        return (torch.from_numpy(np.array(self.values[row, view])),
                torch.from_numpy(np.array(self.classes[row, view])).long())
