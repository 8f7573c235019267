# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Live detection from a config, a checkpoint and a source."""
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from ..apis.models import load_config
from ..sources import Source, open_source
from .models import (
    BACKBONE,
    ONLINE,
    FeatureStreamModel,
    LiveClipModel,
    LiveVideoModel,
)
from .run import RunOptions, StreamRun

# The kind of models that accept an option.
KINDS = dict(
    extractors='feature streams', compile_step='feature streams or frames',
    seconds='clips', stride='clips')


def load_live_model(config: str | Path, checkpoint: str | Path | None,
                    **options: Any
                    ) -> FeatureStreamModel | LiveVideoModel | LiveClipModel:
    """Load a model of feature streams, frames or clips.

    Args:
        config: Config file or name, which determines the kind of model.
        checkpoint: Weights. None for random ones.
        **options: Options of :class:`FeatureStreamModel`,
            :class:`LiveVideoModel` or :class:`LiveClipModel`. An option of
            another kind of model must be None or False, and is ignored.

    Raises:
        ValueError: If an option is for another kind of model, or config,
            checkpoint and options do not fit together.
    """
    cfg = load_config(config, options.get('cfg_options'))
    kind = cfg.get('model', {}).get('type')
    build, unused = LiveClipModel, ('extractors', 'compile_step')
    if kind == ONLINE:
        build, unused = FeatureStreamModel, ('seconds', 'stride')
        if cfg.model.backbone.get('type') == BACKBONE:
            kind, build = f'{kind} of frames', LiveVideoModel
            unused = 'extractors', *unused
    for name in unused:
        value = options.pop(name, None)
        if value is not None and value is not False:
            raise ValueError(f'{name} is for models of {KINDS[name]}, and '
                             f'{config} is a {kind}; got {value!r}')
    return build(config, checkpoint, **options)


class OnlineDetector(StreamRun):
    """Live detector for one source::

        detector = OnlineDetector('testra_tiny_videos', 'testra.pth', 0)
        for detection in detector:
            print(detection.time, detection.scores)

    The model is an online detector of features or frames, or a clip model
    whose window slides over the source. :meth:`with_source` runs the same
    model on another source.

    Args:
        config: Config of :class:`FeatureStreamModel`,
            :class:`LiveVideoModel` or :class:`LiveClipModel`, or a bundle
            (:func:`mmvidattn.apis.save_bundle`).
        checkpoint: Weights. Defaults to the weights of a bundle, or else to
            random ones.
        source: Source, or an argument of :func:`open_source`. Required; pass
            it by name after a bundle, ``OnlineDetector('bundle', source=0)``.
        extractors: Extractors of :class:`FeatureStreamModel`.
        **options: Other options of these classes, and options of
            :class:`~mmvidattn.live.run.RunOptions`.

    Raises:
        ValueError: If the config, the checkpoint, the extractors and the
            source do not match; while iterating, if the source fails.
    """

    def __init__(self, config: str | Path,
                 checkpoint: str | Path | None = None,
                 source: int | str | Path | Source | None = None,
                 extractors: Mapping[str, dict] | None = None,
                 **options: Any) -> None:
        if source is None:
            raise ValueError('source must be a video, a camera or a stream, '
                             'got None')
        names = {field.name for field in fields(RunOptions)}
        run_options = {k: options.pop(k) for k in names & options.keys()}
        # Open the source before building the model: it fails most often.
        source = open_source(source, run_options.get('realtime', False),
                             run_options.get('fps'))
        model = load_live_model(config, checkpoint, extractors=extractors,
                                **options)
        super().__init__(model, source, **run_options)
