# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Live detection by a config, a checkpoint and a source."""
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch

from ..apis.models import load_config
from ..sources import Source, open_source
from .clip_model import LiveClipModel
from .model import ONLINE, LiveModel
from .run import Run, RunOptions


@dataclass(frozen=True)
class ModelOptions:
    """Options of a live model.

    Attributes:
        extractors: Extractors of :class:`LiveModel`; not for clip models.
        events: Arguments of :class:`EventDetector`. They update the config's.
        device: Device to compute on.
        compile_step: Compile the step of :class:`LiveModel`; not for clip
            models.
        cfg_options: Changes to the config, by dotted keys.
        seconds: Length of the window of :class:`LiveClipModel`; only for clip
            models.
        stride: Seconds from a step to the next; only for clip models.
    """
    extractors: Mapping[str, dict] | None = None
    events: dict | None = None
    device: str | torch.device = 'cpu'
    compile_step: bool = False
    cfg_options: dict[str, Any] | None = None
    seconds: float | None = None
    stride: float | None = None


def load_live_model(config: str | Path, checkpoint: str | Path | None,
                    **options: Any) -> LiveModel | LiveClipModel:
    """Load a model of feature streams or of clips, depending on the config.

    Args:
        config: Config file or name.
        checkpoint: Weights. None for random ones.
        **options: Options of :class:`ModelOptions`.

    Raises:
        ValueError: If an option is for the other kind of model, or config,
            checkpoint and options do not fit together.
    """
    given = ModelOptions(**options)
    kind = load_config(config, given.cfg_options).get('model', {}).get('type')
    stream_options = 'extractors', 'compile_step'
    clip_options = 'seconds', 'stride'
    build, names, unused = (
        (LiveModel, stream_options, clip_options) if kind == ONLINE else
        (LiveClipModel, clip_options, stream_options))
    for name in unused:
        value = getattr(given, name)
        if value is not getattr(ModelOptions, name):
            raise ValueError(
                f'{name} is for models of '
                f'{"clips" if kind == ONLINE else "feature streams"}, and '
                f'{config} is a {kind}; got {value!r}')
    return build(config, checkpoint, events=given.events, device=given.device,
                 cfg_options=given.cfg_options,
                 **{name: getattr(given, name) for name in names})


class OnlineDetector(Run):
    """A run of one source with its own model::

        detector = OnlineDetector('testra_tiny_videos', 'testra.pth', 0)
        for detection in detector:
            print(detection.time, detection.scores)

    The model is an online detector, or a clip model whose window slides over
    the source. :meth:`with_source` runs the same model on another source.

    Args:
        config: Config of :class:`LiveModel` or :class:`LiveClipModel`.
        checkpoint: Weights. None for random ones.
        source: Source, or an argument of :func:`open_source`.
        extractors: Extractors of :class:`LiveModel`.
        **options: Options of :class:`ModelOptions` and of
            :class:`~mmvidattn.live.run.RunOptions`.

    Raises:
        ValueError: If the config, the checkpoint, the extractors and the
            source do not fit together. Iterating raises it if the source
            fails.
    """

    def __init__(self, config: str | Path, checkpoint: str | Path | None,
                 source: int | str | Path | Source,
                 extractors: Mapping[str, dict] | None = None,
                 **options: Any) -> None:
        names = {field.name for field in fields(RunOptions)}
        run_options = {k: options.pop(k) for k in names & options.keys()}
        # Open the source before building the model: it fails most often.
        cfg = load_config(config, options.get('cfg_options'))
        source = open_source(source, run_options.get('realtime', False),
                             run_options.get('fps'), cfg.get('video_backend'))
        model = load_live_model(config, checkpoint, extractors=extractors,
                                **options)
        super().__init__(model, source, **run_options)
