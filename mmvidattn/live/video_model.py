# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Live models of frames: one causal network from pixels to scores."""
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import Compose
from torch import Tensor

from ..apis.bundle_types.registry import types_of
from ..apis.sliding import FRAME_WISE
from ..apis.video_clips import test_steps
from ..utils.arguments import Positive, check_type
from .base_model import LiveSessionModel, SessionScorer
from .steps import Step, frame_indices

BACKBONE = 'OnlineVideoEncoder'
# Default of `online.max_gap`, in seconds.
MAX_GAP = 10.


class LiveVideoModel(LiveSessionModel):
    """Online detector that reads frames directly, without extractors.

    Args:
        config: Config of an ``OnlineActionDetector`` with an
            ``OnlineVideoEncoder``, or its name. Its
            ``test_dataloader.dataset`` has ``frame_rate``, in frames per
            second. Its ``online`` may have ``events``, and ``max_gap``, the
            longest gap without frames that an action may span, in seconds
            (10 by default).
        checkpoint: Weights. None for random ones.
        compile_step: Compile the model's step. This takes a minute and makes
            each step faster. Defaults to False.
        **options: Other options of :class:`BaseLiveModel`.

    Raises:
        ValueError: If the config is not for a model of frames, or has a
            pipeline that may not process frames independently.

    Attributes:
        frame_rate: Frames per second that the model was trained with.

    See :class:`BaseLiveModel` for the other attributes.
    """
    online_keys = 'events', 'max_gap'
    frames_on_cpu = True

    def __init__(self,
                 config: str | Path,
                 checkpoint: str | Path | None,
                 compile_step: bool = False,
                 **options: Any) -> None:
        super().__init__(config, checkpoint, **options)
        self.frame_rate = float(
            self.cfg.test_dataloader.dataset['frame_rate'])
        self.pipeline = FrameTransform(self.cfg)
        self.start_session(compile_step)

    def check_config(self, cfg: Config, name: str | Path) -> None:
        """Raise a ``ValueError`` if a config is not for a model of frames."""
        super().check_config(cfg, name)
        dataset = (cfg.get('test_dataloader') or {}).get('dataset') or {}
        if dataset.get('frame_rate') is None:
            raise ValueError(f'test_dataloader.dataset of {name} must have '
                             'frame_rate (frames per second), and lacks it')
        check_type(f'online.max_gap of {name}',
                   cfg.get('online', {}).get('max_gap', MAX_GAP), Positive)

    def new_scorer(self, fps: float) -> 'FrameScorer':
        return FrameScorer(self, fps)


class FrameScorer(SessionScorer):
    """Scorer of the steps of one source, each by one frame.

    A source with fewer frames per second than the model expects has a step
    for each frame, and the state ages by the time between frames.

    Args:
        model: The model.
        fps: Frames per second of the source.

    Attributes:
        rate: Steps per second.
        reach: Number of frames that clips need before the last frame of a
            step, always 0.

    See :class:`SessionScorer` for the other attributes.
    """
    reach = 0

    def __init__(self, model: LiveVideoModel, fps: float) -> None:
        super().__init__(model)
        self._fps = fps
        self.rate = min(model.frame_rate, fps)
        self._elapsed = model.frame_rate / self.rate

    def scores(self, step: Step) -> tuple[np.ndarray, dict[str, float]]:
        """Score a step.

        Returns:
            Class probabilities of this step and of the anticipated ones,
            [1 + A, K], and the duration of each stage in seconds: 'features'
            for resizing the frame, and 'head' for the network.
        """
        start = time.perf_counter()
        image, = step.images_at(
            frame_indices(step.number, self._fps, self.rate, 1, 1))
        frame = self._model.pipeline(image)
        middle = time.perf_counter()
        scores = self.push(dict(frames=frame, elapsed=self._elapsed))
        return scores, dict(features=middle - start,
                            head=time.perf_counter() - middle)

    def skip(self, num_steps: int) -> bool:
        """Age the state by skipped steps.

        The state is always kept, because the network remembers all earlier
        frames. Actions cannot be observed in a gap, so they end before a long
        one.

        Returns:
            False if the gap is longer than ``online.max_gap``, so that
            actions end before it.
        """
        self.session.skip(num_steps, num_steps * self._elapsed)
        max_gap = self._model.online.get('max_gap', MAX_GAP)
        return num_steps / self.rate <= max_gap


class FrameTransform:
    """Steps of a config's test pipeline that change single frames.

    Args:
        cfg: Config whose test pipeline has these steps between decoding and
            ``FormatShape``.

    Raises:
        ValueError: If a step may not process frames independently.
    """

    def __init__(self, cfg: Config) -> None:
        steps, decode = test_steps(cfg)
        names = [step['type'] for step in steps]
        stop = names.index('FormatShape') if 'FormatShape' in names else None
        steps = steps[decode + 1:stop]
        for step in steps:
            if step['type'] not in FRAME_WISE:
                raise ValueError(
                    'for a stream of frames, the steps of the test pipeline '
                    'between decoding and FormatShape must be '
                    f'{" or ".join(FRAME_WISE[:2])}, got {step["type"]}')
        with types_of(cfg):
            self._steps = Compose(steps)

    def __call__(self, image: np.ndarray) -> Tensor:
        """Resize and crop an image [H, W, 3] to uint8 [3, H', W']."""
        shape = image.shape[:2]
        found = self._steps(dict(
            imgs=[image], original_shape=shape, img_shape=shape, num_clips=1,
            clip_len=1, modality='RGB'))
        return torch.from_numpy(
            np.ascontiguousarray(found['imgs'][0].transpose(2, 0, 1)))
