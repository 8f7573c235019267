# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import torch
from mmaction.registry import MODELS
from mmengine.model import BaseModel
from mmengine.structures import BaseDataElement
from torch import Tensor

from ..online import (
    CarriedState,
    ClipPlace,
    StreamSession,
    dense_features,
    stream_videos,
)
from ..utils.arguments import Count, check_arguments


@MODELS.register_module()
@check_arguments
class OnlineActionDetector(BaseModel):
    """Detector or anticipator of the action at each step of a stream.

    With a network of feature streams, the model reads windows of the stream:
    a long memory of N samples and a work memory of the latest L steps. It
    scores these L steps and the A steps that follow. With an
    :class:`~mmvidattn.online.OnlineVideoEncoder`, it reads clips of L frames,
    or entire videos in chunks, and N is 0.

    Args:
        backbone: Config of a model from windows to features [B, L+A, C], such
            as ``TeSTra`` or ``OnlineVideoEncoder``.
        cls_head: Config of a head from features to scores, such as
            ``OnlineActionHead``.
        data_preprocessor: Config of the preprocessor, such as
            ``VideoStreamPreprocessor`` for frames. Defaults to
            ``FeatureStreamPreprocessor``.
        dense_batch_size: Windows per batch in dense evaluation. Defaults to
            32.
        stream_kernel: Kernel of :class:`~mmvidattn.online.StreamSession` in
            the evaluation of streams, 'window' or 'smoothing'. Defaults to
            'window'.
        carry_state: In training, let a clip of frames continue from the state
            after the clip before it in the latest batch, without gradients
            (truncated backpropagation through time). Batches come from
            :class:`~mmvidattn.datasets.StatefulVideoSampler`. Defaults to
            False, which starts each clip anew.
        train_cfg: Ignored; mmaction2 passes it.
        test_cfg: Ignored; mmaction2 passes it.
        init_cfg: Initialization config of ``BaseModel``.

    Raises:
        ValueError: If ``carry_state`` is True for a network without state.

    Attributes:
        carried: State after the latest training batch; None unless
            ``carry_state``.
    """

    def __init__(self,
                 backbone: dict,
                 cls_head: dict,
                 data_preprocessor: dict | None = None,
                 dense_batch_size: Count = 32,
                 stream_kernel: Literal['window', 'smoothing'] = 'window',
                 carry_state: bool = False,
                 train_cfg: dict | None = None,
                 test_cfg: dict | None = None,
                 init_cfg: dict | None = None) -> None:
        if data_preprocessor is None:
            data_preprocessor = dict(type='FeatureStreamPreprocessor')
        super().__init__(data_preprocessor, init_cfg)
        self.backbone = MODELS.build(backbone)
        self.cls_head = MODELS.build(cls_head)
        self.dense_batch_size = dense_batch_size
        self.stream_kernel = stream_kernel
        if carry_state and not hasattr(self.backbone, 'forward_causal'):
            raise ValueError('carry_state=True needs a backbone with a state, '
                             'such as OnlineVideoEncoder, got '
                             f'{type(self.backbone).__name__}')
        self.carried = CarriedState() if carry_state else None

    def forward(
        self,
        inputs: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
        data_samples: Sequence[BaseDataElement] | None = None,
        mode: str = 'tensor',
        stage: str = 'head'
    ) -> dict[str, Tensor] | Tensor | list[BaseDataElement]:
        """Compute scores, losses or predictions.

        Args:
            inputs: Windows, ``{modality: [B, N+L, channels], padding_mask:
                bool [B, N]}``, or clips, ``{frames: [B, 3, L, H, W], elapsed:
                [B, L]}``. In mode 'predict' also a sequence of videos:

                - for dense evaluation of W consecutive windows
                  (:func:`mmvidattn.online.dense_features`), ``{modality:
                  [T, channels], long_indices: [W, N], work_indices: [W, L],
                  padding_mask: [W, N]}``;
                - for videos of frames, ``{chunks: iterable of inputs with
                  frames [1, 3, T, H, W]}``;
                - for parallel streams
                  (:func:`mmvidattn.online.stream_videos`), ``{modality:
                  [T, channels]}`` with its options ``long_rate``,
                  ``work_rate`` and ``stretch_long_memory``.
            data_samples: One per batch element; with targets in mode 'loss'.
                Defaults to new ones.
            mode: 'tensor', 'loss' or 'predict'. Defaults to 'tensor'.
            stage: In mode 'tensor', return logits of the 'head' or features
                of the 'backbone'. Defaults to 'head'.

        Returns:
            In mode 'tensor', ``dict(action=[B, L+A, K])``, with ``verb`` and
            ``noun`` if the head has them; or features [B, L+A, C].
            In mode 'loss', scalars ``loss_action`` and so on.
            In mode 'predict', the data samples with ``pred_action`` [L+A, K]
            and so on. Dense evaluation sets ``pred_action`` [L+W-1, K], each
            step once (all steps of the first window, then the last step of
            each other window), and ``pred_anticipated_action`` [W, A, K].
            Videos and streams set both for the n steps in ``score_steps`` of
            the data sample (by default all), [n, K] and [n, A, K]. Streams add
            ``stream_cost``, and append the kernel to ``evaluation_mode`` if it
            exists.

        Raises:
            ValueError: If mode, stage or inputs have another value.
        """
        # torch.compile does not trace check_type.
        for name, value, choices in (
            ('mode', mode, ('tensor', 'loss', 'predict')),
            ('stage', stage, ('head', 'backbone'))):
            if value not in choices:
                raise ValueError(f'{name} must be one of {choices}, got '
                                 f'{value!r}')
        if not isinstance(inputs, Mapping):
            if mode != 'predict':
                raise ValueError("videos need mode='predict', got "
                                 f'mode={mode!r}')
            samples = _samples(data_samples, len(inputs))
            predict = self._predict_dense
            if 'chunks' in inputs[0]:
                predict = self._predict_frames
            elif 'long_rate' in inputs[0]:
                predict = self._predict_streams
            predict(inputs, samples)
            return samples
        if mode == 'loss':
            # Some backbones have additional outputs for training.
            stages = getattr(self.backbone, 'stages', self.backbone)
            features = (
                stages(inputs) if self.carried is None else
                self._continue_clips(inputs, data_samples))
            return self.cls_head.loss(features, data_samples)
        features = self.backbone(inputs)
        if mode == 'predict':
            scores = self.cls_head.predict(features)
            data_samples = _samples(data_samples, len(features))
            for i, sample in enumerate(data_samples):
                for name, y in scores.items():
                    sample.set_data({f'pred_{name}': y[i]})
            return data_samples
        return features if stage == 'backbone' else self.cls_head(features)

    def _continue_clips(self, inputs: Mapping[str, Tensor],
                        data_samples: Sequence[BaseDataElement]) -> Tensor:
        """Return features [B, L+A, C] of clips after their earlier clips."""
        clips = [
            ClipPlace(sample.video_name, int(sample.work_indices[0]),
                      int(sample.work_indices[-1]) + 1)
            for sample in data_samples]
        initial = self.backbone.encoder.initial_state(len(clips))
        x, state = self.backbone.forward_causal(
            inputs, self.carried.take(clips, initial))
        self.carried.keep(clips, state)
        return torch.cat([x, self.backbone.anticipate(x[:, -1])], dim=1)

    def _set_scores(self, sample: BaseDataElement, scores: dict[str, Tensor],
                    anticipated: dict[str, Tensor]) -> None:
        """Add the scores of steps, and of anticipated steps, to a sample."""
        sample.set_data({f'pred_{name}': y for name, y in scores.items()})
        if self.backbone.num_anticipation_tokens:
            sample.set_data({f'pred_anticipated_{name}': y
                             for name, y in anticipated.items()})

    def _predict_frames(self, inputs: Sequence[Mapping[str, Iterable]],
                        samples: list[BaseDataElement]) -> None:
        for video, sample in zip(inputs, samples):
            state, scores, ahead = None, [], []
            for chunk in video['chunks']:
                x, state = self.backbone.forward_causal(chunk, state)
                scores.append(self.cls_head.predict(x[0]))
                ahead.append(self.cls_head.predict(
                    self.backbone.anticipate(x[0])))
            # Unscored steps are left out, as in streams.
            steps = list(sample.get('score_steps', ())) or slice(None)
            self._set_scores(sample, *(
                {name: torch.cat([part[name] for part in parts])[steps]
                 for name in parts[0]} for parts in (scores, ahead)))

    def _predict_dense(self, inputs: Sequence[Mapping[str, Tensor]],
                       samples: list[BaseDataElement]) -> None:
        model = self.backbone
        for video, sample in zip(inputs, samples):
            features = {name: video[name] for name in model.in_channels}
            long, work, mask = (
                video[name]
                for name in ('long_indices', 'work_indices', 'padding_mask'))
            last = dense_features(model, features, long, work, mask,
                                  self.dense_batch_size)
            # Only the first window scores its steps before the last.
            window = {
                name: torch.cat([x[long[:1]], x[work[:1]]], dim=1)
                for name, x in features.items()
            }
            first = model(dict(window, padding_mask=mask[:1]))[0]
            steps = torch.cat([first[:work.shape[1] - 1], last[:, 0]])
            self._set_scores(sample, self.cls_head.predict(steps),
                             self.cls_head.predict(last[:, 1:]))

    def _predict_streams(self, inputs: Sequence[Mapping[str, Tensor]],
                         samples: list[BaseDataElement]) -> None:
        session = StreamSession(
            self, inputs[0]['long_rate'], inputs[0]['work_rate'],
            self.stream_kernel,
            stretch_long_memory=inputs[0]['stretch_long_memory'])
        lengths = [len(video[next(iter(self.backbone.in_channels))])
                   for video in inputs]
        steps = [sample.get('score_steps', range(length))
                 for sample, length in zip(samples, lengths)]
        all_logits, seconds = stream_videos(session, inputs, steps)
        for sample, length, logits in zip(samples, lengths, all_logits):
            scores = self.cls_head.scores(logits)
            self._set_scores(sample,
                             {name: y[:, 0] for name, y in scores.items()},
                             {name: y[:, 1:] for name, y in scores.items()})
            # The streams ran together; divide the time by their steps.
            cost = dict(
                steps=length,
                seconds=seconds * length / sum(lengths),
                state_bytes=session.num_bytes)
            sample.set_metainfo(dict(stream_cost=cost))
            if 'evaluation_mode' in sample:
                mode = f'{sample.evaluation_mode}_{self.stream_kernel}'
                sample.set_metainfo(dict(evaluation_mode=mode))


def _samples(data_samples: Sequence[BaseDataElement] | None,
             length: int) -> list[BaseDataElement]:
    if data_samples is None:
        return [BaseDataElement() for _ in range(length)]
    return list(data_samples)
