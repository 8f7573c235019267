# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Options of a fine-tuning run."""
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Literal

# Values of ``freeze`` with features that are computed once for each clip.
FROZEN = 'backbone', 'spatial'
FREEZES = 'auto', 'none', *FROZEN
# A set with fewer training clips is small.
FEW_CLIPS = 500
# LoRA rank that ``freeze='auto'`` uses.
RANK = 8
# Default of ``minutes``, and the largest number of epochs in this time.
MINUTES, MAX_EPOCHS = 10, 100
# Losses of ``multi_label``, and their classes.
LOSSES = dict(bce='BCELossWithLogits', asymmetric='AsymmetricLoss')
BALANCES = 'none', 'weights', 'focal', 'sampler'
# Kinds of models of ``stream``, the default first.
STREAM_MODELS = 'pixels', 'features'
DEFAULT_MODEL = 'linear_ff_tiny_motion'


@dataclass(frozen=True)
class FineTuneOptions:
    """Options of ``mmvidattn finetune``, whose ``--help`` describes them.

    Attributes:
        more: Further files of annotations, which are merged with ``source``.
        weights: With ``stream``, weights of the frozen network ``features``.
        work_dir: If the default folder is in use, its name gets a number.

    Raises:
        ValueError: If an option is invalid or excludes another one.
    """
    source: Path
    more: tuple[Path, ...] = ()
    model: str | None = None
    weights: Path | str | None = None
    work_dir: Path | None = None
    epochs: str | int = 'auto'
    minutes: float | None = None
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
    features: str = DEFAULT_MODEL
    columns: dict[str, str] | None = None
    tiers: list[str] | None = None
    fps: float | None = None

    # Options that may change on resume.
    FREE: ClassVar = {'workers', 'timeout', 'quick', 'minutes', 'work_dir'}
    # Options that are only for clips.
    OF_CLIPS: ClassVar = ('freeze', 'lora', 'layer_decay', 'balance',
                          'multi_label', 'loss')

    def __post_init__(self) -> None:
        if self.model is None:
            object.__setattr__(
                self, 'model',
                STREAM_MODELS[0] if self.stream else DEFAULT_MODEL)
        for problem in self._problems():
            raise ValueError(problem)

    def _problems(self) -> Iterator[str]:
        """Yield a message for each invalid option."""
        # With numpy, the help of the command would be slower.
        from ..utils import arguments
        default = {field.name: field.default for field in fields(self)}
        is_random = self.weights in (None, 'none')
        freezes = self.freeze not in ('auto', 'none', None)
        if self.work_dir is not None and self.source.is_dir() and (
                self.out.resolve().is_relative_to(self.source.resolve())):
            yield (f'--work-dir {self.out} must not be inside {self.source}: '
                   'it would become a class')
        for name, annotation in dict(
                epochs=arguments.Count | Literal['auto'],
                freeze=arguments.Natural | Literal[FREEZES] | None,
                layer_decay=arguments.Share | None,
                val_share=arguments.Fraction).items():
            arguments.check_type(f'--{name.replace("_", "-")}',
                                 getattr(self, name), annotation)
        if self.lora is not None and freezes:
            yield ('--lora freezes the backbone already: give either --lora '
                   'or --freeze')
        if is_random and (freezes or self.lora is not None):
            yield '--freeze and --lora need --weights'
        if self.multi_label and self.balance not in ('none', 'sampler'):
            yield (f'--balance {self.balance} is not for --multi-label; use '
                   'sampler')
        if self.loss != 'bce' and not self.multi_label:
            yield '--loss needs --multi-label'
        if not self.stream:
            for name in 'videos', 'tiers', 'features':
                if getattr(self, name) != default[name]:
                    yield f'--{name.replace("tiers", "tier")} needs --stream'
            return
        if self.videos is None:
            yield '--stream needs --videos FOLDER'
        for name in self.OF_CLIPS:
            if getattr(self, name) != default[name]:
                yield f'--{name.replace("_", "-")} is not for --stream'
        if self.model not in STREAM_MODELS:
            yield (f'--model must be {" or ".join(STREAM_MODELS)} with '
                   f'--stream, got {self.model}')
        if self.model == 'features' and self.weights == 'none':
            yield '--model features needs --weights'

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
