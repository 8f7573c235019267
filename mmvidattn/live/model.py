# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Live models of feature streams."""
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.config import Config
from torch import Tensor

from .base_model import LiveSessionModel, SessionScorer
from .feature_extractor import FeatureExtractor
from .steps import Step

ONLINE = 'OnlineActionDetector'
RATES = 'feature_rate', 'long_rate', 'work_rate'
# Options of an extractor that depend on its network.
NETWORK_OPTIONS = 'checkpoint', 'cfg_options', 'layer', 'input', 'clip_len'


class LiveModel(LiveSessionModel):
    """Online detector with the extractors that compute its features.

    Args:
        config: Config of an ``OnlineActionDetector``, or its name. Its
            ``test_dataloader.dataset`` has the rates; ``online`` may have
            ``extractors`` and ``events``.
        checkpoint: Weights. None for random ones.
        extractors: For each modality, arguments of
            :class:`FeatureExtractor`. They must match the extraction of the
            model's training features. They update the config's.
        compile_step: Compile the model's step. This takes a minute and makes
            each step faster. Defaults to False.
        **options: Other options of :class:`BaseLiveModel`.

    Raises:
        ValueError: If the config, the checkpoint and the extractors do not
            match.

    Attributes:
        rate: Steps per second.
        memory_steps: Number of steps after which the memories do not depend on
            an earlier step.

    See :class:`BaseLiveModel` for the other attributes.
    """
    online_keys = 'extractors', 'events'

    def __init__(self,
                 config: str | Path,
                 checkpoint: str | Path | None,
                 extractors: Mapping[str, dict] | None = None,
                 compile_step: bool = False,
                 **options: Any) -> None:
        super().__init__(config, checkpoint, **options)
        dataset = self.cfg.test_dataloader.dataset
        self.rate = float(dataset['feature_rate'])
        backbone = self.model.backbone
        self.memory_steps = (
            backbone.long_memory_length * dataset['long_rate'] +
            backbone.work_memory_length * dataset['work_rate'])
        self.start_session(
            compile_step, dataset['long_rate'], dataset['work_rate'],
            stretch_long_memory=dataset.get('stretch_long_memory'))
        self.extractors = _build_extractors(
            backbone.in_channels, self.online.get('extractors', {}),
            extractors or {}, self.device)

    def check_config(self, cfg: Config, name: str | Path) -> None:
        """Raise a ``ValueError`` if a config is not for an online detector."""
        kind = cfg.get('model', {}).get('type')
        if kind != ONLINE:
            raise ValueError(f'{name} is not an online-detector config: '
                             f'model.type must be {ONLINE!r}, got {kind!r}')
        super().check_config(cfg, name)
        dataset = (cfg.get('test_dataloader') or {}).get('dataset') or {}
        missing = [key for key in RATES if dataset.get(key) is None]
        if missing:
            raise ValueError(
                f'test_dataloader.dataset of {name} must have feature_rate '
                '(steps per second), long_rate and work_rate (steps per '
                'sample of each memory), and lacks '
                f'{", ".join(missing)}')

    def new_scorer(self, fps: float) -> 'FeatureScorer':
        return FeatureScorer(self, fps)


class FeatureScorer(SessionScorer):
    """Scorer of the steps of one source by the features of their frames.

    Args:
        model: Model with its extractors.
        fps: Frames per second of the source.

    Attributes:
        rate: Steps per second.
        reach: Number of frames that clips need before the last frame of a
            step.

    See :class:`SessionScorer` for the other attributes.
    """

    def __init__(self, model: LiveModel, fps: float) -> None:
        super().__init__(model)
        self._fps = fps
        self.rate = model.rate
        self.reach = max(extractor.reach(fps)
                         for extractor in model.extractors.values())

    def scores(self, step: Step) -> tuple[np.ndarray, dict[str, float]]:
        """Score a step.

        Returns:
            Class probabilities of this step and of the anticipated ones,
            [1 + A, K], and the duration of each stage in seconds.
        """
        features, seconds = self._extract(step)
        start = time.perf_counter()
        scores = self.push(features)
        return scores, dict(seconds, head=time.perf_counter() - start)

    def skip(self, num_steps: int) -> bool:
        """Skip steps. Return False if nothing earlier is remembered."""
        if num_steps >= self._model.memory_steps:
            self.session.reset()
            return False
        self.session.skip(num_steps)
        return True

    def _extract(self, step: Step
                 ) -> tuple[dict[str, Tensor], dict[str, float]]:
        """Return the features of a step and the duration of each stage."""
        features, seconds = {}, dict(flow=0., features=0.)
        for name, extractor in self._model.extractors.items():
            indices = extractor.frame_indices(
                step.number, self._fps, self.rate)
            start = time.perf_counter()
            clip = extractor.clip(step.images_at(indices))
            middle = time.perf_counter()
            features[name] = extractor.features([clip])[0]
            seconds['flow'] += middle - start
            seconds['features'] += time.perf_counter() - middle
        return features, seconds


def _build_extractors(in_channels: Mapping[str, int],
                      defaults: Mapping[str, dict],
                      changes: Mapping[str, dict],
                      device: str | torch.device
                      ) -> dict[str, FeatureExtractor]:
    """Build an extractor for each modality, and check it on a clip."""
    options = {name: _merge(defaults.get(name, {}), changes.get(name, {}))
               for name in {**defaults, **changes}}
    unknown = sorted(set(options) - set(in_channels))
    if unknown:
        raise ValueError(
            f'extractors must be for the modalities {", ".join(in_channels)} '
            f'of the model, got {", ".join(unknown)}')
    extractors = {}
    for name, channels in in_channels.items():
        if 'config' not in options.get(name, {}):
            raise ValueError(
                f'extractors.{name} must name the config and the checkpoint '
                f'of the network that computes the features {name!r}')
        extractor = FeatureExtractor(device=device, **options[name])
        if extractor.width != channels:
            raise ValueError(
                f'extractors.{name} must give the {channels} channels that '
                f'the model reads, and {extractor.name} gives '
                f'{extractor.width}')
        extractors[name] = extractor
    return extractors


def _merge(default: Mapping[str, Any], change: Mapping[str, Any]
           ) -> dict[str, Any]:
    """Update options; drop the network options if the network differs."""
    if change.get('config', default.get('config')) != default.get('config'):
        default = {key: value for key, value in default.items()
                   if key not in NETWORK_OPTIONS}
    return {**default, **change}
