# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ..apis.models import load_config
from .clip_model import LiveClipModel
from .model import ONLINE, LiveModel
from .run import Run
from .sources import Source, open_source


def load_live_model(config: str | Path,
                    checkpoint: str | Path | None,
                    extractors: Mapping[str, dict] | None = None,
                    events: dict | None = None,
                    device: str | torch.device = 'cpu',
                    compile_step: bool = False,
                    cfg_options: dict[str, Any] | None = None,
                    seconds: float | None = None,
                    stride: float | None = None
                    ) -> LiveModel | LiveClipModel:
    """Load a model of feature streams or of clips, by its config.

    The arguments are those of :class:`LiveModel`, and ``seconds`` and
    ``stride`` those of :class:`LiveClipModel`.

    Raises:
        ValueError: If an option belongs to the other kind of model, or
            something does not fit together.
    """
    kind = load_config(config, cfg_options).get('model', {}).get('type')
    of_streams = dict(extractors=extractors, compile_step=compile_step)
    of_clips = dict(seconds=seconds, stride=stride)
    alien = of_clips if kind == ONLINE else of_streams
    for name, value in alien.items():
        # Left out is None, no compilation, no extractors.
        if value or value == 0 and value is not False:
            raise ValueError(
                f'{name} is for models of '
                f'{"clips" if kind == ONLINE else "feature streams"}, and '
                f'{config} is a {kind}; got {value!r}')
    if kind == ONLINE:
        return LiveModel(config, checkpoint, extractors, events, device,
                         compile_step, cfg_options)
    return LiveClipModel(config, checkpoint, seconds, stride, events, device,
                         cfg_options)


class OnlineDetector(Run):
    """A run of one source, with a model of its own::

        detector = OnlineDetector('testra_tiny_videos', 'testra.pth', 0)
        for detection in detector:
            print(detection.time, detection.scores)

    The model is one of feature streams or a recognizer of clips, whose window
    slides over the source. :meth:`with_source` runs it on another source.

    Args:
        config: See :class:`LiveModel` or :class:`LiveClipModel`, as for all
            that is not listed here.
        checkpoint: Its weights.
        source: See :func:`open_source`.
        events_file: See :class:`Run`, as for ``queue_size``,
            ``state_file``, ``state_seconds`` and ``duration``.
        realtime: Play a recording at its own speed, as if it were live.
        fps: Frames a second; see :func:`open_source`.

    Raises:
        ValueError: If the config, the checkpoint, the extractors and the
            source do not fit together; while it runs, if the source breaks.
    """

    def __init__(self,
                 config: str | Path,
                 checkpoint: str | Path | None,
                 source: int | str | Path | Source,
                 extractors: Mapping[str, dict] | None = None,
                 events: dict | None = None,
                 events_file: str | Path | None = None,
                 device: str | torch.device = 'cpu',
                 realtime: bool = False,
                 fps: float | None = None,
                 queue_size: int = 4,
                 compile_step: bool = False,
                 cfg_options: dict[str, Any] | None = None,
                 seconds: float | None = None,
                 stride: float | None = None,
                 state_file: str | Path | None = None,
                 state_seconds: float = 10.,
                 duration: float | None = None) -> None:
        # Before the model is built: the source is what is most often wrong.
        cfg = load_config(config, cfg_options)
        source = open_source(source, realtime, fps, cfg.get('video_backend'))
        model = load_live_model(
            config, checkpoint, extractors, events, device, compile_step,
            cfg_options, seconds, stride)
        super().__init__(
            model, source, events_file, queue_size=queue_size,
            state_file=state_file, state_seconds=state_seconds,
            duration=duration)
