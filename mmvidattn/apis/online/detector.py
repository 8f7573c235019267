# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Online detection from pixels."""
import copy
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.config import Config
from torch import nn

from ...online import StreamSession
from ..models import get_model, load_config
from ..predict import find_labels
from .events import EventDetector, EventLog
from .feature_extractor import FeatureExtractor
from .latency import Latency
from .sources import Source, open_source
from .step_queue import StepQueue
from .steps import Step, StepMaker

# What the dataset of an online detector says of time.
RATES = 'feature_rate', 'long_rate', 'work_rate'
ONLINE_KEYS = 'extractors', 'events'


@dataclass(frozen=True)
class Detection:
    """What is known at the end of a step.

    Attributes:
        step: Its number, from 0. Numbers that are left out were dropped, or
            had no frames.
        time: Its end, in seconds of the source.
        scores: The probabilities of the classes now, [K].
        anticipated: Those of steps to come, nearest first, [A, K].
        events: What started or ended (:class:`EventDetector`).
        images: The frames of the step, RGB ``(H, W, 3)``, oldest first.
        seconds: What it took, by stage (:class:`Latency`).
    """
    step: int
    time: float
    scores: np.ndarray
    anticipated: np.ndarray
    events: Sequence[dict]
    images: Sequence[np.ndarray]
    seconds: Mapping[str, float]


class OnlineDetector:
    """Says of a video, while it runs, what happens in it.

    Frames are read in a thread of their own and cut into steps at the rate of
    the model; a recognizer for each modality turns a step into features; and
    a :class:`mmvidattn.online.StreamSession` into scores::

        detector = OnlineDetector('testra_tiny_videos', 'testra.pth', 0)
        for detection in detector:
            print(detection.time, detection.scores)

    Between the threads is a queue of ``queue_size`` steps. When the machine
    is too slow for a live source, the oldest are dropped and counted
    (``dropped``); a file waits. The model is told of steps that are missing;
    when its whole memory is, the stream begins anew.

    Args:
        config: Config of an ``OnlineActionDetector``, or its name. Its
            ``test_dataloader.dataset`` has the rates; ``online`` may have
            ``extractors`` and ``events``, as below.
        checkpoint: Its weights.
        source: See :func:`open_source`.
        extractors: Of each modality the arguments of
            :class:`FeatureExtractor`, the same as those that made the
            features the model was trained on. They update the config's.
        events: Arguments of :class:`EventDetector`. They update the config's.
        events_file: File to write events to, as JSON Lines, as they happen.
        device: Where to compute.
        realtime: Play a recording at its own speed, as if it were live.
        fps: Frames a second; see :func:`open_source`.
        queue_size: Steps that may wait.
        compile_step: Compile the model's step, once for all sources. That
            takes a minute, before the first frame; the step is faster then.
        cfg_options: What to change in the config, by dotted keys.

    Raises:
        ValueError: If the config, the checkpoint, the extractors and the
            source do not fit together; while it runs, if the source breaks.

    Attributes:
        classes: Names of the K classes.
        ignore: Those that are no actions: the background, and what the
            dataset ignores.
        rate: Steps a second.
        source: See :func:`open_source`.
        latency: See :class:`Latency`.
        events: The latest ones (:class:`EventLog`).
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
        cfg = load_config(config, cfg_options)
        dataset = _check_config(cfg, config)
        online = cfg.get('online', {})
        self._event_options = {**online.get('events', {}), **(events or {})}
        self.ignore = {0, dataset.get('ignore_index')} - {None}
        # Before models are built: it is what is most often wrong.
        self.source = open_source(source, realtime, fps)
        self.model = get_model(config, checkpoint, device, cfg_options)
        self.classes = _class_names(self.model)
        self.rate = float(dataset['feature_rate'])
        self.session = StreamSession(
            self.model, dataset['long_rate'], dataset['work_rate'],
            stretch_long_memory=dataset.get('stretch_long_memory'))
        backbone = self.model.backbone
        if compile_step:
            self.session.step.compile()
            # It is made when it is first called.
            self.session.push({
                name: torch.zeros(channels)
                for name, channels in backbone.in_channels.items()
            })
            self.session.reset()
        self._memory_steps = (
            backbone.long_memory_length * dataset['long_rate'] +
            backbone.work_memory_length * dataset['work_rate'])
        self.extractors = _build_extractors(
            backbone.in_channels, online.get('extractors', {}),
            extractors or {}, device)
        self._begin(queue_size, events_file)

    def with_source(self, source: int | str | Path | Source,
                    events_file: str | Path | None = None,
                    realtime: bool = False,
                    fps: float | None = None) -> 'OnlineDetector':
        """A detector of another source, with the same models."""
        other = copy.copy(self)
        other.source = open_source(source, realtime, fps)
        other.session = self.session.spawn()
        other._begin(self._queue.size, events_file)
        return other

    def _begin(self, queue_size: int, events_file: str | Path | None) -> None:
        reach = max((e.num_frames - 1) * e.frame_interval
                    for e in self.extractors.values())
        self._steps = StepMaker(self.source.fps, self.rate, reach)
        self._queue: StepQueue[Step] = StepQueue(queue_size, self.source.live)
        self._detect_events = EventDetector(
            self.classes, self.ignore, **self._event_options)
        self.latency = Latency()
        self._next = self._done = 0
        self._begun = False
        self._failed = ''
        # Last, so that a mistake leaves no file.
        self.events = EventLog(events_file)

    @property
    def dropped(self) -> int:
        """Steps that were dropped because the machine was too slow."""
        return self._queue.dropped

    @property
    def missing(self) -> int:
        """Steps of which the source had no frames."""
        return self._steps.missing

    def report(self) -> dict[str, Any]:
        """What was done so far, and what the source is at."""
        return dict(
            name=self.source.name,
            status=self._failed or self.source.status,
            rate=self.rate,
            steps=self._done,
            dropped=self.dropped,
            missing=self.missing,
            latency=self.latency.report())

    def __iter__(self) -> Iterator[Detection]:
        if self._begun:
            raise RuntimeError('a detector runs once; with_source() makes '
                               'another one')
        self._begun = True
        reader = threading.Thread(
            target=self._read, name=f'reads {self.source.name}', daemon=True)
        reader.start()
        try:
            for step in self._queue:
                yield self._detect(step)
        except Exception as error:
            self._failed = f'failed: {error}'
            raise
        finally:
            self.stop()
            reader.join()
            self.events.write(
                self._detect_events.finish(self._next / self.rate))
            self.events.close()

    def stop(self) -> None:
        """End soon; from any thread."""
        self.source.stop()
        self._queue.close()

    def _read(self) -> None:
        try:
            for frame in self.source:
                for step in self._steps.add(frame):
                    if not self._queue.put(step):
                        return
        except Exception as error:
            # Raised where the queue is read.
            self._queue.close(error)
        else:
            self._queue.close()

    def _detect(self, step: Step) -> Detection:
        events = self._skip(step.number - self._next)
        seconds = dict.fromkeys(('flow', 'features'), 0.)
        seconds['decode'] = sum(f.decode_time for f in step.new_frames)
        features = {}
        clock = time.perf_counter
        for name, extractor in self.extractors.items():
            frames = step.images(extractor.frames_of_step(
                step.number, self.source.fps, self.rate))
            began = clock()
            images = extractor.images(frames)
            made = clock()
            features[name] = extractor.features([images])[0]
            seconds['flow'] += made - began
            seconds['features'] += clock() - made
        began = clock()
        logits = self.session.push(features)['action']
        scores = logits.float().softmax(-1).cpu().numpy()
        seconds['head'] = clock() - began
        seconds['total'] = sum(seconds.values())
        seconds['lag'] = time.monotonic() - step.frames[-1].at
        self.latency.add(seconds)
        self._next = step.number + 1
        self._done += 1
        end = self._next / self.rate
        events += self._detect_events.update(
            step.number / self.rate, end, scores[0])
        self.events.write(events)
        return Detection(step.number, end, scores[0], scores[1:], events,
                         [frame.image for frame in step.new_frames], seconds)

    def _skip(self, number: int) -> list[dict]:
        """Tell the model of steps that it does not get; returns what ended."""
        if number >= self._memory_steps:
            self.session.reset()
            return self._detect_events.finish(self._next / self.rate)
        for _ in range(number):
            self.session.push(None)
        return []


def _check_config(cfg: Config, name: str | Path) -> dict:
    """The dataset of the config of an online detector."""
    kind = cfg.get('model', {}).get('type')
    if kind != 'OnlineActionDetector':
        raise ValueError(f'{name} is no config of an online detector: '
                         f"model.type must be 'OnlineActionDetector', got "
                         f'{kind!r}')
    unknown = sorted(set(cfg.get('online', {})) - set(ONLINE_KEYS))
    if unknown:
        raise ValueError(f'online of {name} may have '
                         f'{" and ".join(ONLINE_KEYS)}, got '
                         f'{", ".join(unknown)}')
    dataset = (cfg.get('test_dataloader') or {}).get('dataset') or {}
    lacking = [key for key in RATES if dataset.get(key) is None]
    if lacking:
        raise ValueError(
            f'{name} does not tell its rates: test_dataloader.dataset must '
            'have feature_rate (steps a second), long_rate and work_rate (a '
            f'sample every so many steps), and lacks {", ".join(lacking)}')
    return dataset


def _class_names(model: nn.Module) -> list[str]:
    """A name for each class of the model."""
    number = model.cls_head.num_classes
    names = find_labels(model)
    if names and len(names) != number:
        raise ValueError(f'there are {len(names)} names of classes, and the '
                         f'model has {number}')
    return names or ['background'] + [f'class {i}' for i in range(1, number)]


def _build_extractors(in_channels: Mapping[str, int],
                      of_config: Mapping[str, dict],
                      given: Mapping[str, dict],
                      device: str | torch.device
                      ) -> dict[str, FeatureExtractor]:
    """An extractor for each modality, tried out."""
    options = {name: {**of_config.get(name, {}), **given.get(name, {})}
               for name in {**of_config, **given}}
    unknown = sorted(set(options) - set(in_channels))
    if unknown:
        raise ValueError(
            f'the model reads {" and ".join(in_channels)}; there is an '
            f'extractor of {", ".join(unknown)}')
    extractors = {}
    for name, channels in in_channels.items():
        if 'config' not in options.get(name, {}):
            raise ValueError(
                f'the model reads features {name!r}: extractors.{name} must '
                'name the config and the checkpoint of the recognizer that '
                'they are of')
        extractor = FeatureExtractor(device=device, **options[name])
        black = [np.zeros((64, 64, 3), np.uint8)] * extractor.num_frames
        width = extractor.features([extractor.images(black)]).shape[-1]
        if width != channels:
            raise ValueError(
                f'the model reads {channels} features {name!r}, and the '
                f'recognizer {options[name]["config"]} gives {width}')
        extractors[name] = extractor
    return extractors
