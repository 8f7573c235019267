# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Check the videos, choose the model, and write the config."""
from contextlib import suppress
from dataclasses import replace
from functools import partial

from mmengine.config import Config

from ...apis.models import DEFAULT, find_default, load_config
from ...datasets.annotations.custom.labeled_videos import count
from ...utils.files import write_atomically
from ...utils.printable import echo
from ..config import format_config
from ..console import no_prints
from ..epochs import fit_epochs
from ..options import FineTuneOptions
from .choice import EXTRACTION, SIDES, Speed, choose, time_features
from .config import build_config, checkpoint_of
from .features import build_extractor, write_features
from .plan import make_stream_plan


def complete_options(options: FineTuneOptions) -> FineTuneOptions:
    """Choose the weights of the frozen network."""
    weights = options.weights
    if str(weights) == 'auto':
        weights = None
        with suppress(ValueError, FileNotFoundError):
            find_default(options.features)
            weights = DEFAULT
    return replace(options, weights=None if weights == 'none' else weights)


def prepare(options: FineTuneOptions, command: str,
            dry_run: bool = False) -> dict:
    """Check the videos, choose the model, and write lists and config.

    Returns:
        Content of ``finetune.json``, which is written when training begins.
    """
    out = options.out
    plan = make_stream_plan(options)
    if dry_run:
        echo('note: the model is chosen by measurements before the training')
        cfg = build_config('pixels', options, plan, 1, SIDES[0])
        echo(f'\n{format_config(cfg, command)}', end='')
        return {}
    plan.write_lists(out / 'data')

    def write(kind: str, size: int, epochs: int = 1) -> Config:
        cfg = build_config(kind, options, plan, epochs, size)
        path = out / 'config.py'
        write_atomically(path, format_config(cfg, command).encode())
        return load_config(path)

    def measure(kind: str, size: int, minutes: float) -> tuple[int, float]:
        with no_prints():
            return fit_epochs(write(kind, size), minutes)

    build = partial(build_extractor, options.features, checkpoint_of(options))
    choice = choose(
        plan, options.minutes, options.model,
        lambda side: Speed(side, *measure('pixels', side, options.minutes)),
        lambda: time_features(plan, build()))
    echo(f'model: {choice.kind}, because {choice.reason}')
    if choice.kind == 'pixels':
        size, epochs = choice.speed.side, choice.speed.epochs
    else:
        extractor = build()
        spent = write_features(plan, extractor, out / 'data') / 60
        size, epochs = extractor.width, options.epochs
        if epochs == 'auto':
            # An interrupted extraction may have taken longer than the rest.
            epochs, _ = measure('features', size, max(
                options.minutes - spent, EXTRACTION * options.minutes))
    if options.epochs != 'auto':
        epochs = options.epochs
    write(choice.kind, size, epochs)
    echo(count(epochs, 'epoch'))
    return dict(options=options.fixed(), videos=len(plan.segments),
                kind=choice.kind, reason=choice.reason)
