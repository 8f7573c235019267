# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from mmaction.registry import MODELS
from mmengine.model import BaseModel
from mmengine.structures import BaseDataElement
from torch import Tensor

from ..online import StreamSession, dense_features, stream_videos
from ..utils.arguments import Count, check_arguments


@MODELS.register_module()
@check_arguments
class OnlineActionDetector(BaseModel):
    """Says of each step of a feature stream what happens, or will soon.

    It reads windows of the stream: a long memory of N samples and a work
    memory of the latest L steps, which it scores, with A steps to come.

    Args:
        backbone: Windows to features [B, L+A, C], e.g. ``TeSTra``.
        cls_head: Features to scores, e.g. ``OnlineActionHead``.
        data_preprocessor: Batches the windows.
        dense_batch_size: Windows at a time in dense evaluation.
        stream_kernel: Kernel of :class:`~mmvidattn.online.StreamSession` in
            the evaluation of streams: 'window' or 'smoothing'.
        train_cfg: Ignored; mmaction2 gives it.
        test_cfg: Likewise.
        init_cfg: Of ``BaseModel``.
    """

    def __init__(self,
                 backbone: dict,
                 cls_head: dict,
                 data_preprocessor: dict | None = None,
                 dense_batch_size: Count = 32,
                 stream_kernel: Literal['window', 'smoothing'] = 'window',
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

    def forward(
        self,
        inputs: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
        data_samples: Sequence[BaseDataElement] | None = None,
        mode: str = 'tensor',
        stage: str = 'head'
    ) -> dict[str, Tensor] | Tensor | list[BaseDataElement]:
        """Scores, losses or predictions.

        Args:
            inputs: ``{modality: features}``, each [B, N+L, channels], and
                ``padding_mask``, bool [B, N], True where the long memory is
                padded. In mode 'predict' whole videos are taken as well, a
                sequence of ``{modality: [T, channels], long_indices: [W, N],
                work_indices: [W, L], padding_mask: [W, N]}``: W consecutive
                windows, evaluated densely
                (:func:`mmvidattn.online.dense_features`). Or, with numbers
                ``long_rate`` and ``work_rate``, and ``stretch_long_memory``,
                in the place of indices and mask, videos that run as streams
                side by side, with options of these names
                (:func:`mmvidattn.online.stream_videos`).
            data_samples: Of each of the batch; with targets in mode 'loss'.
            mode: 'tensor', 'loss' or 'predict'.
            stage: In mode 'tensor', what to return: of the 'head' (logits)
                or of the 'backbone' (features).

        Returns:
            tensor: ``dict(action=[B, L+A, K])``, with ``verb`` and ``noun``
            where the head has them; or features [B, L+A, C].
            loss: ``loss_action`` and so on, scalars.
            predict: the data samples, with ``pred_action`` [L+A, K], and
            ``pred_verb`` and ``pred_noun``. Of whole videos that is
            [L+W-1, K], each step once: the steps of the first window, then
            the last of each other; and ``pred_anticipated_action`` is
            [W, A, K]. Of streams both are of the steps in ``score_steps`` of
            the data sample (by default all), [n, K] and [n, A, K], and
            ``stream_cost`` says what they took; ``evaluation_mode``, if there
            is one, ends with the kernel.

        Raises:
            ValueError: If mode, stage or inputs are none of these.
        """
        if mode not in ('tensor', 'loss', 'predict'):
            raise ValueError("mode must be 'tensor', 'loss' or 'predict', got "
                             f'{mode!r}')
        if stage not in ('head', 'backbone'):
            raise ValueError(f"stage must be 'head' or 'backbone', got "
                             f'{stage!r}')
        if not isinstance(inputs, Mapping):
            if mode != 'predict':
                raise ValueError('whole videos are for mode predict, got '
                                 f'mode {mode!r}')
            predict = (self._predict_streams if 'long_rate' in inputs[0] else
                       self._predict_dense)
            return predict(inputs, data_samples)
        if mode == 'loss':
            # Some are trained by more than what they are tested by.
            read = getattr(self.backbone, 'stages', self.backbone)
            return self.cls_head.loss(read(inputs), data_samples)
        features = self.backbone(inputs)
        if mode == 'predict':
            scores = self.cls_head.predict(features)
            data_samples = _samples(data_samples, len(features))
            for i, sample in enumerate(data_samples):
                for name, y in scores.items():
                    sample.set_data({f'pred_{name}': y[i]})
            return data_samples
        return features if stage == 'backbone' else self.cls_head(features)

    def _predict_dense(
        self, inputs: Sequence[Mapping[str, Tensor]],
        data_samples: Sequence[BaseDataElement] | None
    ) -> list[BaseDataElement]:
        model, data_samples = self.backbone, _samples(data_samples,
                                                      len(inputs))
        for video, sample in zip(inputs, data_samples):
            features = {name: video[name] for name in model.in_channels}
            long, work, mask = (
                video[name]
                for name in ('long_indices', 'work_indices', 'padding_mask'))
            last = dense_features(model, features, long, work, mask,
                                  self.dense_batch_size)
            # Nothing before the first window scores its other steps.
            window = {
                name: torch.cat([x[long[:1]], x[work[:1]]], dim=1)
                for name, x in features.items()
            }
            first = model(dict(window, padding_mask=mask[:1]))[0]
            steps = torch.cat([first[:work.shape[1] - 1], last[:, 0]])
            for name, y in self.cls_head.predict(steps).items():
                sample.set_data({f'pred_{name}': y})
            if model.num_anticipation_tokens:
                for name, y in self.cls_head.predict(last[:, 1:]).items():
                    sample.set_data({f'pred_anticipated_{name}': y})
        return data_samples

    def _predict_streams(
        self, inputs: Sequence[Mapping[str, Tensor]],
        data_samples: Sequence[BaseDataElement] | None
    ) -> list[BaseDataElement]:
        data_samples = _samples(data_samples, len(inputs))
        session = StreamSession(
            self,
            inputs[0]['long_rate'],
            inputs[0]['work_rate'],
            self.stream_kernel,
            stretch_long_memory=inputs[0]['stretch_long_memory'])
        lengths = [len(video[next(iter(self.backbone.in_channels))])
                   for video in inputs]
        steps = [sample.get('score_steps', range(length))
                 for sample, length in zip(data_samples, lengths)]
        found, seconds = stream_videos(session, inputs, steps)
        for sample, length, logits in zip(data_samples, lengths, found):
            for name, y in self.cls_head.scores(logits).items():
                sample.set_data({f'pred_{name}': y[:, 0]})
                if self.backbone.num_anticipation_tokens:
                    sample.set_data({f'pred_anticipated_{name}': y[:, 1:]})
            # All streams together, in equal shares of their steps.
            cost = dict(
                steps=length,
                seconds=seconds * length / sum(lengths),
                state_bytes=session.num_bytes)
            sample.set_metainfo(dict(stream_cost=cost))
            if 'evaluation_mode' in sample:
                mode = f'{sample.evaluation_mode}_{self.stream_kernel}'
                sample.set_metainfo(dict(evaluation_mode=mode))
        return data_samples


def _samples(data_samples: Sequence[BaseDataElement] | None,
             length: int) -> list[BaseDataElement]:
    if data_samples is None:
        return [BaseDataElement() for _ in range(length)]
    return list(data_samples)
