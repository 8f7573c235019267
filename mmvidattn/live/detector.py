# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ..apis import load_config
from .model import LiveModel
from .run import Run
from .sources import Source, open_source


class OnlineDetector(Run):
    """A run of one source, with a model of its own::

        detector = OnlineDetector('testra_tiny_videos', 'testra.pth', 0)
        for detection in detector:
            print(detection.time, detection.scores)

    :meth:`with_source` runs the same model on another source.

    Args:
        config: See :class:`LiveModel`, as for all that is not listed here.
        checkpoint: Its weights.
        source: See :func:`open_source`.
        events_file: See :class:`Run`, as for ``queue_size``.
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
                 cfg_options: dict[str, Any] | None = None) -> None:
        # Before the model is built: the source is what is most often wrong.
        cfg = load_config(config, cfg_options)
        source = open_source(source, realtime, fps, cfg.get('video_backend'))
        model = LiveModel(config, checkpoint, extractors, events, device,
                          compile_step, cfg_options)
        super().__init__(model, source, events_file, queue_size=queue_size)
