# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Classification of videos from files, folders, memory and streams."""
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from torch import Tensor, nn

from ..datasets.video_facts import list_videos
from ..utils.arguments import Count, Positive, check_arguments
from .labels import Prediction, find_labels, probabilities, top_predictions
from .models import find_model
from .video_clips import (
    ClipPipeline,
    VideoSource,
    is_folder_of_videos,
    local_source,
    read_clips,
    source_name,
)


@dataclass(frozen=True)
class VideoPrediction:
    """Prediction for a video, or for a time window of a video.

    Attributes:
        video: Name of the video.
        start: Start of the video or window in seconds.
        end: End in seconds; None if the frame rate is unknown.
        predictions: The most probable classes, best first.
        probabilities: Probabilities of all classes, float32 [K], on the CPU;
            None after an error.
        error: Reason why the video could not be read or scored, or None.
    """
    video: str
    start: float = 0.
    end: float | None = None
    predictions: tuple[Prediction, ...] = ()
    probabilities: Tensor | None = None
    error: str | None = None

    def __repr__(self) -> str:
        end = '?' if self.end is None else f'{self.end:.2f}'
        text = self.error or ', '.join(
            f'{p.label} {p.score:.3f}' for p in self.predictions)
        return (f'{type(self).__name__}({self.video!r}, {self.start:.2f} to '
                f'{end} s: {text})')

    def as_dict(self) -> dict[str, Any]:
        """Return all fields for JSON, except ``probabilities``."""
        if self.error is not None:
            return dict(video=self.video, error=self.error)
        end = None if self.end is None else round(self.end, 3)
        return dict(
            video=self.video, start=round(self.start, 3), end=end,
            predictions=[p._asdict() for p in self.predictions])


class VideoClassifier:
    """Classifier of videos.

    It runs the config's test pipeline, with the same views, crops and sizes.
    Probabilities of a file equal the results of ``tools/test.py``.

    A source can be

    - the path of a video file, or its URL: http or https, which is downloaded
      to a temporary file, or an object store such as ``s3://bucket/a.mp4``
      (``docs/remote.md``);
    - a folder of frames, as images in the order of the numbers in their names;
    - a folder of videos, which has at least one video directly in it;
    - frames in memory, a numpy array or tensor, **uint8 [T, H, W, 3], RGB**.

    Args:
        model: Name from :func:`mmvidattn.list_models`, path of a config or of
            a bundle, loaded config, or model from
            :func:`mmvidattn.get_model`.
        checkpoint: Checkpoint of exactly this model, ``'default'`` for the
            weights that come with the package, or ``'published'`` for its
            authors' weights. Defaults to the weights of a bundle, or else to
            random weights, with a warning.
        device: Device of the model. Defaults to 'cpu'.
        labels: Class names. Defaults to the names in the checkpoint or else
            in the config. A class without a name is called e.g. ``class 3``.
        **kwargs: Other arguments of :func:`mmvidattn.get_model`.

    Raises:
        ValueError: If the config's test pipeline does not decode videos, or
            the model is for streams.
    """

    def __init__(self,
                 model: str | Path | Config | nn.Module,
                 checkpoint: str | Path | None = None,
                 device: str | torch.device = 'cpu',
                 labels: Sequence[str] | None = None,
                 **kwargs: Any) -> None:
        self.model = find_model(model, checkpoint, device, **kwargs)
        self._pipeline = ClipPipeline(self.model.cfg)
        if type(self.model).__name__ == 'OnlineActionDetector':
            raise ValueError(
                'this model detects actions in streams: use mmvidattn stream, '
                'predict --segments, or mmvidattn.OnlineDetector')
        self.labels = (find_labels(self.model) if labels is None else
                       list(labels))

    @check_arguments(source=Any)
    def __call__(self,
                 source: VideoSource | Sequence[VideoSource],
                 *,
                 topk: Count = 5,
                 batch_size: Count = 1,
                 fps: Positive | None = None
                 ) -> VideoPrediction | list[VideoPrediction]:
        """Classify one or several videos.

        Args:
            source: A source (see above), a list of sources, or a folder of
                videos, including subfolders.
            topk: Maximum number of predicted classes. Defaults to 5.
            batch_size: Number of videos per batch. Defaults to 1.
            fps: Frame rate of frames in memory or in a folder. Defaults to the
                rate at which the pipeline samples, if it is fixed.

        Returns:
            A prediction for a source, or a list of predictions as from
            :meth:`each`.

        Raises:
            FileNotFoundError: If the file does not exist.
            ValueError: If a single source cannot be read, or its scores are
                not finite.
        """
        if isinstance(source, (list, tuple)) or is_folder_of_videos(source):
            return list(self.each(source, topk=topk, batch_size=batch_size,
                                  fps=fps))
        prediction, = self._batches(self._read(source, fps), topk, 1)
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
        """Classify several videos; yield the predictions one by one.

        The prediction of an unreadable video has an ``error``. Arguments as in
        :meth:`__call__`.
        """
        return self._batches(self._read_each(sources, fps), topk, batch_size)

    @check_arguments(source=Any)
    def windows(self,
                source: VideoSource,
                seconds: Positive,
                stride: Positive | None = None,
                *,
                topk: Count = 5,
                batch_size: Count = 1,
                fps: Positive | None = None) -> Iterator[VideoPrediction]:
        """Classify each time window of a long video.

        Window ``k`` contains the frames whose time stamps are in
        ``[k * stride, k * stride + seconds)``, with a tolerance of a
        millisecond. A file cut at these times has the same predictions. The
        last window ends with the video and may be shorter. Windows without
        frames are skipped.

        Memory does not grow with the video: only the sampled frames are
        decoded. For a camera or a live stream, use ``mmvidattn stream``.

        Args:
            source, topk, batch_size: See :meth:`__call__`.
            seconds: Length of a window.
            stride: Seconds between the starts of consecutive windows.
                Defaults to ``seconds``.
            fps: Frame rate. Required for frames in memory or in a folder.

        Raises:
            FileNotFoundError: If the file does not exist.
            ValueError: If the source cannot be opened or read.
        """
        return self._batches(
            self._read(source, fps, seconds,
                       seconds if stride is None else stride),
            topk, batch_size)

    def _read(self, source: VideoSource, fps: float | None,
              seconds: float | None = None, stride: float | None = None
              ) -> Iterator[tuple[VideoPrediction, dict]]:
        """Read an entire video, or its windows; errors name the video."""
        name = source_name(source)
        try:
            with local_source(source) as local:
                for clip in read_clips(local, self._pipeline, fps, seconds,
                                       stride):
                    yield VideoPrediction(name, clip.start, clip.end
                                          ), self._pipeline(clip.sample)
        except FileNotFoundError:
            raise
        except Exception as error:
            # Drop the lines after the first: decord adds a stack trace.
            reason = (str(error).strip() or type(error).__name__).splitlines()
            raise ValueError(f'cannot read {name}: {reason[0]}') from error

    def _read_each(self, sources: VideoSource | Iterable[VideoSource],
                   fps: float | None
                   ) -> Iterator[tuple[VideoPrediction, dict | None]]:
        if isinstance(sources, (str, Path)) or hasattr(sources, 'dtype'):
            sources = [sources]
        for source in chain.from_iterable(
                map(Path, list_videos(one)) if is_folder_of_videos(one)
                else [one] for one in sources):
            try:
                yield from self._read(source, fps)
            except (ValueError, OSError) as error:
                yield VideoPrediction(
                    source_name(source), error=str(error)), None

    def _batches(self, read: Iterator[tuple[VideoPrediction, dict | None]],
                 topk: int, batch_size: int) -> Iterator[VideoPrediction]:
        batch = [None]
        while batch:
            batch = []
            try:
                # Collect items one by one, to predict those before an error.
                for item in islice(read, batch_size):
                    batch.append(item)
            except (ValueError, OSError):
                yield from self._predict(batch, topk)
                raise
            yield from self._predict(batch, topk)

    def _predict(self, batch: Sequence[tuple[VideoPrediction, dict | None]],
                 topk: int) -> Iterator[VideoPrediction]:
        data = [data for _, data in batch if data is not None]
        with torch.no_grad():
            samples = iter(
                self.model.test_step(pseudo_collate(data)) if data else ())
        for prediction, data in batch:
            if data is not None:
                sample = next(samples)
                try:
                    scores = probabilities(self.model, sample.pred_score)
                    prediction = replace(
                        prediction, probabilities=scores, predictions=tuple(
                            top_predictions(scores, self.labels, topk)))
                except ValueError as error:
                    prediction = replace(prediction, error=str(error))
            yield prediction
