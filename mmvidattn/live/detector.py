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
        extractors: See :class:`LiveModel`, as for ``compile_step``; for
            models of feature streams.
        events: Arguments of :class:`EventDetector`. They update the config's.
        device: Device to compute on.
        compile_step: See :class:`LiveModel`.
        cfg_options: Changes to the config, by dotted keys.
        seconds: See :class:`LiveClipModel`, as for ``stride``; for models of
            clips.
        stride: Seconds from a step to the next.
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
    """Load a model of feature streams or of clips, by its config.

    Args:
        config: Config, or its name.
        checkpoint: Weights of the model.
        **options: See :class:`ModelOptions`.

    Raises:
        ValueError: If an option belongs to the other kind of model, or
            something does not fit together.
    """
    given = ModelOptions(**options)
    kind = load_config(config, given.cfg_options).get('model', {}).get('type')
    of_streams = dict(extractors=given.extractors,
                      compile_step=given.compile_step)
    of_clips = dict(seconds=given.seconds, stride=given.stride)
    alien = of_clips if kind == ONLINE else of_streams
    for name, value in alien.items():
        # Left out is None, no compilation, no extractors.
        if value or value == 0 and value is not False:
            raise ValueError(
                f'{name} is for models of '
                f'{"clips" if kind == ONLINE else "feature streams"}, and '
                f'{config} is a {kind}; got {value!r}')
    build, rest = (LiveModel, of_streams) if kind == ONLINE else (
        LiveClipModel, of_clips)
    return build(config, checkpoint, events=given.events, device=given.device,
                 cfg_options=given.cfg_options, **rest)


class OnlineDetector(Run):
    """A run of one source, with a model of its own::

        detector = OnlineDetector('testra_tiny_videos', 'testra.pth', 0)
        for detection in detector:
            print(detection.time, detection.scores)

    The model is one of feature streams or a recognizer of clips, whose window
    slides over the source. :meth:`with_source` runs it on another source.

    Args:
        config: Config of the model, or its name; see :class:`LiveModel` and
            :class:`LiveClipModel`.
        checkpoint: Weights of the model.
        source: See :func:`open_source`.
        extractors: See :class:`LiveModel`.
        **options: See :class:`ModelOptions` and
            :class:`~mmvidattn.live.run.RunOptions`.

    Raises:
        ValueError: If the config, the checkpoint, the extractors and the
            source do not fit together; while it runs, if the source breaks.
    """

    def __init__(self, config: str | Path, checkpoint: str | Path | None,
                 source: int | str | Path | Source,
                 extractors: Mapping[str, dict] | None = None,
                 **options: Any) -> None:
        names = {field.name for field in fields(RunOptions)}
        of_run = {k: options.pop(k) for k in names & options.keys()}
        # Before the model is built: the source is what is most often wrong.
        cfg = load_config(config, options.get('cfg_options'))
        source = open_source(source, of_run.get('realtime', False),
                             of_run.get('fps'), cfg.get('video_backend'))
        model = load_live_model(config, checkpoint, extractors=extractors,
                                **options)
        super().__init__(model, source, **of_run)
