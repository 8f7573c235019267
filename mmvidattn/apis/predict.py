# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Predictions of what happens in videos, whatever they come as."""
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

import torch
from mmengine.dataset import pseudo_collate
from torch import Tensor, nn

from ..utils.arguments import Count, Positive, check_arguments
from .labels import (
    Prediction,
    find_labels,
    probabilities,
    top_predictions,
)
from .models import get_model
from .video_clips import (
    ClipPipeline,
    VideoSource,
    find_videos,
    is_folder_of_videos,
    local_source,
    source_name,
    whole_clip,
    window_clips,
)


@dataclass(frozen=True)
class VideoPrediction:
    """What happens in a video, or in a window of it.

    Attributes:
        video: Its name.
        start: Seconds at which what was looked at begins.
        end: Seconds at which it ends; None of frames of unknown rate.
        predictions: The most probable classes, best first.
        probabilities: Of all classes, float32 [K], on the CPU; None if there
            is an error.
        error: Why the video could not be read or has no scores, or None.
    """
    video: str
    start: float = 0.
    end: float | None = None
    predictions: tuple[Prediction, ...] = ()
    probabilities: Tensor | None = None
    error: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """What goes into a JSON file: all but ``probabilities``."""
        found = dict(video=self.video)
        if self.error is not None:
            return dict(found, error=self.error)
        end = None if self.end is None else round(self.end, 3)
        return dict(
            found, start=round(self.start, 3), end=end,
            predictions=[p._asdict() for p in self.predictions])


def write_json_line(file: IO[str], prediction: VideoPrediction) -> None:
    """Write a prediction as a line of JSON, at once."""
    file.write(json.dumps(prediction.as_dict()) + '\n')
    file.flush()


class VideoClassifier:
    """A model that says what happens in videos of any kind.

    Views, crops and sizes are those of the config's test pipeline, so that
    the probabilities of a file are those of ``tools/test.py``.

    A source is one of

    - the path of a video file, or its URL (http or https, with the suffix of
      a video; it is downloaded to a temporary file);
    - a folder of frames, as images in the order of the numbers in their names;
    - frames in memory, a numpy array or tensor, **uint8 [T, H, W, 3], RGB**;
    - for :meth:`windows`, also the number of a camera, the URL of a stream,
      or a :class:`mmvidattn.sources.Source`.

    Args:
        model: A name of :func:`mmvidattn.list_models`, the path of a config,
            or a model of :func:`mmvidattn.get_model`.
        checkpoint: Weights of exactly this model. Defaults to fresh ones.
        device: Where to compute.
        labels: Names of the classes. Defaults to those that the checkpoint,
            else the config has; a class without one is called e.g.
            ``class 3``.
        **kwargs: Other arguments of :func:`mmvidattn.get_model`.

    Raises:
        ValueError: If the config is not one of videos.
    """

    def __init__(self,
                 model: str | Path | nn.Module,
                 checkpoint: str | Path | None = None,
                 device: str | torch.device = 'cpu',
                 labels: Sequence[str] | None = None,
                 **kwargs: Any) -> None:
        if not isinstance(model, nn.Module):
            model = get_model(model, checkpoint, device, **kwargs)
        self.model = model
        self._pipeline = ClipPipeline(model.cfg)
        self.labels = find_labels(model) if labels is None else list(labels)

    @check_arguments(source=Any)
    def __call__(self,
                 source: VideoSource | Sequence[VideoSource],
                 *,
                 topk: Count = 5,
                 batch_size: Count = 1,
                 fps: Positive | None = None
                 ) -> VideoPrediction | list[VideoPrediction]:
        """Say what happens in a video, or in each of several.

        Args:
            source: A source, see above; or a list of them, or a folder of
                videos, in subfolders as well.
            topk: How many classes to name, at most.
            batch_size: Videos to compute at a time.
            fps: Frames a second of frames in memory and of folders of frames.
                Sampling at a fixed rate takes frames of unknown rate to have
                it.

        Returns:
            A prediction; or a list of them, see :meth:`each`.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If the one video can't be read or has no end, or its
                scores are not finite.
        """
        if isinstance(source, (list, tuple)) or is_folder_of_videos(source):
            return list(self.each(source, topk=topk, batch_size=batch_size,
                                  fps=fps))
        prediction = next(self._predict([self._read(source, fps)], topk))
        if prediction.error is not None:
            raise ValueError(f'{prediction.video}: {prediction.error}')
        return prediction

    @check_arguments(sources=Any)
    def each(self,
             sources: VideoSource | Iterable[VideoSource],
             *,
             topk: Count = 5,
             batch_size: Count = 1,
             fps: Positive | None = None) -> Iterator[VideoPrediction]:
        """Say what happens in each of several videos, as they are read.

        A video that can't be read has an ``error``, and the others go on.

        Args: see :meth:`__call__`.
        """
        return self._batches(
            self._read_each(sources, fps), topk, batch_size)

    @check_arguments(source=Any)
    def windows(self,
                source: VideoSource,
                seconds: Positive,
                stride: Positive | None = None,
                *,
                topk: Count = 5,
                batch_size: Count = 1,
                fps: Positive | None = None) -> Iterator[VideoPrediction]:
        """Say what happens in each window of a long video, as it is read.

        Window ``k`` has the frames that begin from ``k * stride`` to before
        ``k * stride + seconds``, by their time stamps, to a millisecond: its
        predictions are those of a file that was cut there. The last one ends
        with the video, and may be shorter. One in which no frame begins is
        left out.

        Memory does not grow with the video. Of a file, only the frames that
        the pipeline samples are decoded and kept; of a camera, a stream or a
        folder of frames, all those of a window are. What a camera shows while
        the model computes may be lost: ``mmvidattn stream`` is for models
        that keep up.

        Args:
            source: A source, see above.
            seconds: Length of a window.
            stride: Seconds from the start of a window to that of the next.
                Defaults to ``seconds``.
            topk: How many classes to name, at most.
            batch_size: Windows to compute at a time.
            fps: Frames a second of frames in memory and of folders of frames,
                where it is needed, or of a live source (default: what it
                reports).

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If it can't be opened; while it is read, if it breaks
                off.
        """
        stride = seconds if stride is None else stride
        return self._batches(
            self._read_windows(source, seconds, stride, fps), topk,
            batch_size)

    def _read(self, source: VideoSource, fps: float | None
              ) -> tuple[VideoPrediction, dict]:
        name = source_name(source)
        with _named(name), local_source(source) as local:
            clip = whole_clip(local, self._pipeline, fps)
            return VideoPrediction(
                name, clip.start, clip.end), self._pipeline(clip.sample)

    def _read_each(self, sources: VideoSource | Iterable[VideoSource],
                   fps: float | None
                   ) -> Iterator[tuple[VideoPrediction, dict | None]]:
        for source in expand_folders(sources):
            try:
                read = self._read(source, fps)
            except (ValueError, OSError) as error:
                yield VideoPrediction(
                    source_name(source), error=str(error)), None
            else:
                yield read

    def _read_windows(self, source: VideoSource, seconds: float,
                      stride: float, fps: float | None
                      ) -> Iterator[tuple[VideoPrediction, dict]]:
        name = source_name(source)
        with _named(name), local_source(source) as local:
            for clip in window_clips(
                    local, self._pipeline, seconds, stride, fps):
                yield VideoPrediction(
                    name, clip.start, clip.end), self._pipeline(clip.sample)

    def _batches(self, read: Iterator[tuple[VideoPrediction, dict | None]],
                 topk: int, batch_size: int) -> Iterator[VideoPrediction]:
        batch, fault = [None], None
        while batch and fault is None:
            batch = []
            try:
                # One by one: what was read before a fault is predicted.
                for one in islice(read, batch_size):
                    batch.append(one)
            except (ValueError, OSError) as error:
                fault = error
            yield from self._predict(batch, topk)
        if fault is not None:
            raise fault

    def _predict(self, batch: Sequence[tuple[VideoPrediction, dict | None]],
                 topk: int) -> Iterator[VideoPrediction]:
        data = [data for _, data in batch if data is not None]
        samples = iter(())
        if data:
            with torch.no_grad():
                samples = iter(self.model.test_step(pseudo_collate(data)))
        for prediction, data in batch:
            if data is None:
                yield prediction
                continue
            sample = next(samples)
            try:
                found = probabilities(self.model, sample.pred_score)
            except ValueError as error:
                yield replace(prediction, error=str(error))
                continue
            yield replace(
                prediction, probabilities=found,
                predictions=tuple(top_predictions(found, self.labels, topk)))


def predict_video(model: nn.Module,
                  video: str | Path,
                  topk: Count = 5,
                  labels: Sequence[str] | None = None) -> list[Prediction]:
    """Recognize what happens in a video, with the config's test pipeline.

    Args:
        model: Of :func:`mmvidattn.get_model`.
        video: A video file.
        topk: How many classes to return, at most.
        labels: Names of the classes. Defaults to those the model knows;
            a class without a name is called e.g. ``class 3``.

    Returns:
        The most probable classes, best first.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it can't be read.
    """
    found = VideoClassifier(model, labels=labels)(video, topk=topk)
    return list(found.predictions)


def expand_folders(sources: VideoSource | Iterable[VideoSource]
                   ) -> list[VideoSource]:
    """Sources, with the videos in folders in place of these."""
    if isinstance(sources, (str, Path, int, Tensor)) or hasattr(
            sources, 'dtype'):
        sources = [sources]
    found = []
    for source in sources:
        found += find_videos(source) if is_folder_of_videos(
            source) else [source]
    return found


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Errors name the source."""
    try:
        yield
    except FileNotFoundError:
        raise
    except Exception as error:
        # The lines after the first are decord's stack trace.
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f'cannot read {name}: {reason}') from error
