# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Options of a fine-tuning run."""
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

# Parts of a model that can be frozen so that their features can be cached.
CACHEABLE = 'backbone', 'spatial'
FREEZES = 'auto', 'none', *CACHEABLE
# Sets with fewer training clips are small.
FEW_CLIPS = 500
# Rank of the updates of ``freeze='auto'``.
RANK = 8
# With epochs='auto'.
MAX_EPOCHS = 100
BALANCES = 'none', 'weights', 'focal', 'sampler'


@dataclass(frozen=True)
class FineTuneOptions:
    """Options of ``mmvidattn finetune``, under the names of its arguments.

    Attributes:
        source: Folder with a folder of videos for each class, or a CSV file.
        model: Name or path of the config to inherit.
        weights: Checkpoint to start from; ``'default'`` for the weights that
            come with the package; ``'none'`` or None for random weights; or
            ``'auto'`` for ``'default'`` if the model has these weights, or
            else ``'none'``, which asks in a terminal. Defaults to None.
        work_dir: Folder for all results. Defaults to the next free one of
            ``work_dirs/finetune_<name of source>``, then ``..._2`` and so on.
        epochs: Number of epochs, or ``'auto'`` for as many as fit into
            ``minutes``.
        minutes: Time for training, validation and test if ``epochs`` is
            ``'auto'``.
        freeze: ``'backbone'``, ``'spatial'``, the number of frozen blocks, or
            ``'none'``, which trains all layers that the config trains.
            Defaults to ``'auto'``: for a small set with weights the same as
            ``lora=RANK`` (or ``'backbone'`` if the model has no attention
            projections), or else ``'none'``.
        cache_features: Folder for the features of the frozen part; the empty
            string stands for ``features`` in ``work_dir``. Defaults to None,
            no cache.
        variants: Number of random augmentations of each training video in
            the cache.
        lora: Rank of low-rank updates of the attention's projections.
        layer_decay: Ratio of the learning rates of a layer and the next one.
        balance: Method to balance the classes; see ``BALANCES``.
        batch_size: Batch size of training. Defaults to the inherited
            config's, or less for a small dataset.
        lr: Learning rate. Defaults to the inherited config's, scaled.
        val_share: Share of each class for validation, unless the CSV sets
            ``split``.
        seed: Seed of the split and the training.
        quick: Whether the check only decodes the last frame of each video.
        timeout: Seconds for checking one video.
        workers: Number of processes that read videos.
    """
    source: Path
    model: str = 'linear_ff_tiny_motion'
    weights: Path | str | None = None
    work_dir: Path | None = None
    epochs: str | int = 'auto'
    minutes: float = 10
    freeze: str | int | None = 'auto'
    cache_features: str | None = None
    variants: int = 1
    lora: int | None = None
    layer_decay: float | None = None
    balance: str = 'none'
    batch_size: int | None = None
    lr: float | None = None
    val_share: float = 0.2
    seed: int = 0
    quick: bool = False
    timeout: float = 60
    workers: int = min(4, os.cpu_count() or 1)

    # Options that may change on resume.
    FREE: ClassVar = {'workers', 'timeout', 'quick', 'minutes', 'work_dir'}
    # Options that older work directories lack, and their values.
    ADDED: ClassVar = dict(cache_features=None, variants=1)

    @property
    def out(self) -> Path:
        """The work directory."""
        name = self.source.resolve().stem or 'videos'
        return self.work_dir or Path('work_dirs', f'finetune_{name}')

    @property
    def cache_dir(self) -> Path | None:
        """Folder of the cached features; None without a cache."""
        if self.cache_features is None:
            return None
        return Path(self.cache_features or self.out / 'features').resolve()

    def fixed(self) -> dict[str, Any]:
        """Return the options that a run must keep when it resumes."""
        options = {name: value for name, value in asdict(self).items()
                   if name not in self.FREE}
        for name in 'source', 'weights', 'cache_features':
            if options[name] and options[name] != 'default':
                options[name] = str(Path(options[name]).resolve())
        return options
