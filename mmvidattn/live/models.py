# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Live models of features, clips and frames, and scorers of their steps."""
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import Compose
from torch import Tensor, nn

from ..apis.bundle_types.registry import types_of
from ..apis.compiling import compile_in_place
from ..apis.labels import find_labels
from ..apis.models import get_model, load_config
from ..apis.sliding import FRAME_WISE, SlidingClassifier
from ..apis.video_clips import test_steps
from ..online import StreamSession
from ..online.event_detector import EventDetector, merge_event_options
from ..online.event_thresholds import read_thresholds
from ..utils.arguments import Positive, check_type
from .features import FeatureExtractor
from .steps import Step, frame_indices

ONLINE, BACKBONE = 'OnlineActionDetector', 'OnlineVideoEncoder'
RATES = 'feature_rate', 'long_rate', 'work_rate'
# Options of an extractor that depend on its network.
NETWORK_OPTIONS = 'checkpoint', 'cfg_options', 'layer', 'input', 'clip_len'
# Frame rate to check the config before the rate of the source is known.
TRIAL_FPS = 25.
# Default of `online.max_gap`, in seconds.
MAX_GAP = 10.


class BaseLiveModel:
    """Base class of models that score the steps of live sources.

    Several runs can share a model at the same time, because it stores no
    state of a stream: each :class:`StreamRun` creates a session and an event
    detector.

    Args:
        config: Config file or name.
        checkpoint: Weights. None for random ones.
        events: Arguments of :class:`EventDetector`. They update
            ``online.events`` of the config (:func:`merge_event_options`).
        thresholds: ``thresholds`` of :class:`EventDetector`, or a file of
            ``mmvidattn tune-thresholds``. Defaults to the config's.
        device: Device to compute on. Defaults to 'cpu'.
        cfg_options: Changes to the config, by dotted keys.

    Raises:
        ValueError: If the config is for another kind of model, or the
            checkpoint does not fit it.

    Attributes:
        device: Device to compute on.
        cfg: The config.
        online: ``online`` of the config.
        model: The mmaction2 model.
        extractors: A :class:`FeatureExtractor` for each modality; empty for a
            clip model.
        classes: Names of the K classes.
        ignore: Indices of classes that are not actions.
    """
    #: Keys that ``online`` of the config may have.
    online_keys: tuple[str, ...]
    #: True if an unnamed first class is called 'background'.
    has_background: bool

    def __init__(self,
                 config: str | Path,
                 checkpoint: str | Path | None,
                 *,
                 events: dict | None = None,
                 thresholds: str | Path | Mapping | None = None,
                 device: str | torch.device = 'cpu',
                 cfg_options: dict[str, Any] | None = None) -> None:
        self.device = device
        self.cfg = load_config(config, cfg_options)
        self.check_config(self.cfg, config)
        self.online = self.cfg.get('online', {})
        self.model = get_model(config, checkpoint, device, cfg_options)
        self.classes = _class_names(self.model, self.has_background)
        self.ignore: set[int] = set()
        self.extractors: dict = {}
        events = dict(events or {})
        if thresholds is not None:
            events['thresholds'] = (
                thresholds if isinstance(thresholds, Mapping)
                else read_thresholds(thresholds).classes)
        self._event_options = merge_event_options(
            self.online.get('events', {}), events)

    def check_config(self, cfg: Config, name: str | Path) -> None:
        """Raise a ``ValueError`` if a config is not for this class."""
        unknown = sorted(set(cfg.get('online', {})) - set(self.online_keys))
        if unknown:
            raise ValueError(f'online of {name} may have '
                             f'{" and ".join(self.online_keys)}, got '
                             f'{", ".join(unknown)}')

    def new_scorer(self, fps: float) -> Any:
        """Create the scorer of a source with ``fps`` frames per second."""
        raise NotImplementedError

    def new_event_detector(self) -> EventDetector:
        """Create the event detector of a source."""
        return EventDetector(self.classes, self.ignore, **self._event_options)


class LiveSessionModel(BaseLiveModel):
    """Base class of live models that score steps by a ``StreamSession``.

    A subclass calls :meth:`start_session` in its constructor.

    Attributes:
        ignore: Indices of classes that are not actions: the background, and
            the class that the dataset ignores.
        frames_on_cpu: True if the scorer pushes frames in CPU memory, False
            if they are on the device of the model.

    See :class:`BaseLiveModel` for the arguments and the other attributes.
    """
    has_background = True
    frames_on_cpu = False

    def start_session(self, compile_step: bool, *args: Any,
                      **kwargs: Any) -> None:
        """Create the session that :meth:`new_session` copies.

        Args:
            compile_step: Compile the step of all sessions.
            *args: Arguments of :class:`mmvidattn.online.StreamSession`.
            **kwargs: Keyword arguments of ``StreamSession``.
        """
        dataset = self.cfg.test_dataloader.dataset
        self.ignore = {0, dataset.get('ignore_index')} - {None}
        self._session = StreamSession(self.model, *args, **kwargs)
        if compile_step:
            step = self._session.step
            compile_in_place(step)
            # The first call compiles. Its frames are on the scorer's device.
            device = 'cpu' if self.frames_on_cpu else None
            self.new_session().push({
                name: x[0].to(device)
                for name, x in step.blank_frames(1).items()
                if name not in step.frame_defaults})

    def new_session(self) -> StreamSession:
        """Create the session of a stream."""
        return self._session.spawn()


class SessionScorer:
    """Base class of scorers of one source by a ``StreamSession``.

    Args:
        model: The model.
        fps: Frames per second of the source.

    Attributes:
        session: Session of the stream.
        num_bad: Number of steps whose features or frame were not finite.
        rate: Steps per second.
        reach: Number of frames that clips need before the last frame of a
            step.
    """
    rate: float
    reach = 0

    def __init__(self, model: LiveSessionModel, fps: float) -> None:
        self.session = model.new_session()
        self.num_bad = 0
        self._model, self._fps = model, fps

    def scores(self, step: Step) -> tuple[np.ndarray, dict[str, float]]:
        """Score a step.

        Returns:
            Class probabilities of this step and of the anticipated ones,
            [1 + A, K], and the duration of each stage in seconds.
        """
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the session."""
        return self.session.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a state of :meth:`state_dict`."""
        self.session.load_state_dict(state_dict)

    def push(self, features: Mapping[str, Tensor | float]) -> np.ndarray:
        """Return the scores of one frame for :meth:`StreamSession.push`."""
        logits = self.session.push(features)
        self.num_bad += bool(logits['bad_frame'])
        return self._model.model.cls_head.probabilities(
            dict(action=logits['action']))['action'].cpu().numpy()


def _class_names(model: nn.Module, has_background: bool) -> Sequence[str]:
    number = model.cls_head.num_classes
    names = find_labels(model)
    if names and len(names) != number:
        raise ValueError(f'the dataset must name the {number} classes of the '
                         f'model, got {len(names)} names')
    if not names:
        names = [f'class {i}' for i in range(number)]
        if has_background:
            names[0] = 'background'
    return names


class FeatureStreamModel(LiveSessionModel):
    """Online detector with the extractors that compute its features.

    ``test_dataloader.dataset`` of the config has the rates; ``online`` may
    have ``extractors`` and ``events``. See :class:`BaseLiveModel` for the
    other arguments and attributes.

    Args:
        extractors: For each modality, arguments of
            :class:`FeatureExtractor`. They must match the extraction of the
            model's training features. They update the config's.
        compile_step: Compile the model's step. This takes a minute and makes
            each step faster. Defaults to False.

    Attributes:
        rate: Steps per second.
        memory_steps: Number of steps after which the memories do not depend on
            an earlier step.
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
    """Scorer of the steps of one source by the features of their frames."""

    def __init__(self, model: FeatureStreamModel, fps: float) -> None:
        super().__init__(model, fps)
        self.rate = model.rate
        self.reach = max(extractor.reach(fps)
                         for extractor in model.extractors.values())

    def scores(self, step: Step) -> tuple[np.ndarray, dict[str, float]]:
        """Score a step; see :meth:`SessionScorer.scores`."""
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


class LiveClipModel(BaseLiveModel):
    """Clip model that runs on a sliding window of each source.

    A step has the length of one stride. A run keeps the frames of a window, so
    that a window after a dropped step still contains all of its frames.
    ``online`` of the config may have ``seconds``, ``stride`` and ``events``.
    See :class:`BaseLiveModel` for the other arguments and the attributes.

    Args:
        seconds: Length of the window, see :class:`SlidingClassifier`.
            Defaults to the config's.
        stride: Seconds from a step to the next, see
            :class:`SlidingClassifier`. Defaults to the config's.
    """
    online_keys = 'events', 'seconds', 'stride'
    has_background = False

    def __init__(self,
                 config: str | Path,
                 checkpoint: str | Path | None,
                 seconds: float | None = None,
                 stride: float | None = None,
                 **options: Any) -> None:
        super().__init__(config, checkpoint, **options)
        self._session = SlidingClassifier(
            self.model, fps=TRIAL_FPS,
            seconds=self.online.get('seconds') if seconds is None else seconds,
            stride=self.online.get('stride') if stride is None else stride)

    def new_scorer(self, fps: float) -> 'ClipScorer':
        return ClipScorer(self._session.spawn(fps))


class ClipScorer:
    """Scorer of the steps of one source, each by the window that ends with it.

    Args:
        session: Session of the source.

    Attributes:
        session: Session of the source.
        rate: Steps per second.
        reach: Number of frames before a step's last one that a window needs.
        num_bad: Number of steps whose features were not finite, always 0.
    """
    num_bad = 0

    def __init__(self, session: SlidingClassifier) -> None:
        self.session = session
        self.rate = session.rate
        self.reach = session.window_frames
        self._next_frame = 0

    def state_dict(self) -> dict[str, Any]:
        """Return an empty state; a resumed run reads its window again."""
        return {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a state of :meth:`state_dict`."""

    def scores(self, step: Step) -> tuple[np.ndarray, dict[str, float]]:
        """Score a step, [1, K]; see :meth:`SessionScorer.scores`.

        'features' encodes new frames, 'head' computes the part that windows
        do not share.
        """
        start = time.perf_counter()
        stop = (step.number + 1) * self.session.stride_frames
        first = max(self._next_frame, stop - self.session.window_frames)
        for frame in step.frames:
            if frame.index >= first:
                self.session.add(frame.index, frame.image)
        self._next_frame = stop
        encoded = self.session.encode(stop)
        middle = time.perf_counter()
        scores = self.session.classify(encoded).numpy()[None]
        return scores, dict(
            features=middle - start, head=time.perf_counter() - middle)

    def skip(self, num_steps: int) -> bool:
        """Skip steps. Return False if they are as long as a window."""
        session = self.session
        return num_steps * session.stride_frames < session.window_frames


class LiveVideoModel(LiveSessionModel):
    """Online detector that reads frames directly, without extractors.

    Its backbone is an ``OnlineVideoEncoder``. ``test_dataloader.dataset`` of
    the config has ``frame_rate``, in frames per second. ``online`` may have
    ``events``, and ``max_gap``, the longest gap without frames that an action
    may span, in seconds (10 by default). See :class:`BaseLiveModel` for the
    other arguments and attributes.

    Args:
        compile_step: Compile the model's step. This takes a minute and makes
            each step faster. Defaults to False.

    Attributes:
        frame_rate: Frames per second that the model was trained with.
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
    """

    def __init__(self, model: LiveVideoModel, fps: float) -> None:
        super().__init__(model, fps)
        self.rate = min(model.frame_rate, fps)
        self._elapsed = model.frame_rate / self.rate

    def scores(self, step: Step) -> tuple[np.ndarray, dict[str, float]]:
        """Score a step; see :meth:`SessionScorer.scores`.

        'features' resizes the frame, 'head' is the network.
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
