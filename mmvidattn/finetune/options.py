# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Options of a fine-tuning run."""
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

# Values of ``freeze`` with features that are computed once for each clip.
FROZEN = 'backbone', 'spatial'
FREEZES = 'auto', 'none', *FROZEN
# A set with fewer training clips is small.
FEW_CLIPS = 500
# LoRA rank that ``freeze='auto'`` uses.
RANK = 8
# Limit of ``epochs='auto'``.
MAX_EPOCHS = 100
# Losses of ``multi_label``, and their classes.
LOSSES = dict(bce='BCELossWithLogits', asymmetric='AsymmetricLoss')
# Kinds of models of ``stream``.
MODELS = 'auto', 'pixels', 'features'
# Options that are only for clips.
OF_CLIPS = ('freeze', 'lora', 'layer_decay', 'balance', 'multi_label', 'loss')
BALANCES = 'none', 'weights', 'focal', 'sampler'


@dataclass(frozen=True)
class FineTuneOptions:
    """Options of ``mmvidattn finetune``, named like its arguments.

    ``mmvidattn finetune --help`` describes them.

    Attributes:
        source: Folder with a folder of videos for each class, or a file of
            annotations.
        more: Further files of annotations, which are merged with ``source``.
        weights: Checkpoint to start from, ``'default'``, ``'auto'``, or
            ``'none'`` or None for random weights. With ``stream``, weights of
            the frozen network ``features``.
        work_dir: Folder for all results. Defaults to
            ``work_dirs/finetune_<name of source>``; if it is in use, ``..._2``
            and so on.
        columns: Columns of ``source`` if it is another program's table, see
            :func:`~mmvidattn.datasets.annotations.video_segment.read_table`.
    """
    source: Path
    more: tuple[Path, ...] = ()
    model: str = 'linear_ff_tiny_motion'
    weights: Path | str | None = None
    work_dir: Path | None = None
    epochs: str | int = 'auto'
    minutes: float = 10
    freeze: str | int | None = 'auto'
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
    multi_label: bool = False
    loss: str = 'bce'
    stream: bool = False
    videos: Path | None = None
    features: str = 'linear_ff_tiny_motion'
    columns: dict[str, str] | None = None
    fps: float | None = None

    # Options that may change on resume.
    FREE: ClassVar = {'workers', 'timeout', 'quick', 'minutes', 'work_dir'}
    # Options that older work directories did not record, and their values.
    ADDED: ClassVar = dict(stream=False, videos=None,
                           features='linear_ff_tiny_motion',
                           multi_label=False, loss='bce', columns=None,
                           fps=None, more=[])

    @property
    def sources(self) -> list[Path]:
        """Folder or files with the labels."""
        return [self.source, *self.more]

    @property
    def out(self) -> Path:
        """The work directory."""
        name = self.source.resolve().stem or 'videos'
        return self.work_dir or Path('work_dirs', f'finetune_{name}')

    def fixed(self) -> dict[str, Any]:
        """Return the options that must not change on resume."""
        options = {name: value for name, value in asdict(self).items()
                   if name not in self.FREE}
        for name in 'source', 'weights', 'videos':
            if options[name] and options[name] != 'default':
                options[name] = str(Path(options[name]).resolve())
        options['more'] = [str(path.resolve()) for path in self.more]
        return options
