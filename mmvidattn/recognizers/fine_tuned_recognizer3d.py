# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from typing import Any, Literal, NamedTuple

import torch
from mmaction.models import Recognizer3D
from mmaction.registry import MODELS
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from ..layers.lora import add_lora
from ..utils.arguments import Count, Natural, check_arguments

Part = Literal['backbone', 'spatial']


class FrozenFeatures(NamedTuple):
    """Features of the frozen layers for each view of samples, [B, V, *]."""
    values: Tensor


@MODELS.register_module()
@check_arguments
class FineTunedRecognizer3D(Recognizer3D):
    """``Recognizer3D`` with frozen layers or LoRA.

    Its tensors have the same names as in ``Recognizer3D``, so each class loads
    checkpoints of the other. Checkpoints with LoRA have additional tensors,
    which :func:`mmvidattn.get_model` merges.

    The frozen layers stay in evaluation mode, without dropout or changes of
    running statistics. With LoRA, the running statistics of the backbone do
    not change either.

    If the samples of :class:`~mmvidattn.datasets.FrozenFeatureDataset` have
    the features of the frozen layers, only the other layers run.

    Args:
        freeze: ``'backbone'`` trains only the head (a linear probe, if the
            head is one linear layer); ``'spatial'`` trains the head and the
            temporal encoder of a factorized encoder, such as ``ViViT`` with
            ``model='fact_encoder'``; a number n freezes the first n blocks
            and the layers before them. Defaults to None, no freezing.
        lora: Arguments of :func:`mmvidattn.layers.add_lora`, such as
            ``dict(rank=8)``; only these updates of the backbone are trained.
            Defaults to None, no LoRA.
        pool_clips: Number of consecutive clips of a video (``num_clips`` of
            the pipeline) whose features the head gets as one clip, as in the
            probes of V-JEPA 2. A video with a single clip is not pooled.
            Defaults to 1.
        **kwargs: Arguments of ``Recognizer3D``.

    Raises:
        ValueError: If both options are set; if the backbone has fewer than
            ``freeze`` blocks; or if it lacks ``get_layer_depth`` or a
            temporal encoder that ``freeze`` needs.
    """

    def __init__(self, backbone: dict, *args: Any,
                 freeze: Part | Natural | None = None,
                 lora: dict | None = None, pool_clips: Count = 1,
                 **kwargs: Any) -> None:
        super().__init__(backbone, *args, **kwargs)
        self.pool_clips = pool_clips
        if lora is not None and freeze is not None:
            raise ValueError('lora already freezes the backbone, got '
                             f'freeze={freeze!r} as well')
        self.freeze = freeze
        self._frozen: list[nn.Module] = []
        if lora is not None:
            self.backbone.requires_grad_(False)
            add_lora(self.backbone, **lora)
            self._frozen = [module for module in self.backbone.modules()
                            if isinstance(module, _NormBase)]
        elif freeze is not None:
            self._freeze_parameters()
            # Modules whose parameters are all frozen.
            self._frozen = [
                part for part in self.backbone.modules()
                if (parameters := [*part.parameters()])
                and not any(p.requires_grad for p in parameters)]

    def _freeze_parameters(self) -> None:
        backbone, freeze = self.backbone, self.freeze
        if freeze in ('backbone', 'spatial'):
            backbone.requires_grad_(False)
            if freeze == 'backbone':
                return
            trained = getattr(backbone, 'temporal_encoder', None)
            if trained is None:
                raise ValueError(
                    "freeze='spatial' needs a backbone with a spatial and a "
                    "temporal encoder, such as ViViT with model='fact_encoder'"
                    ' and num_temporal_layers from 1, got a '
                    f'{type(backbone).__name__} without')
            trained.requires_grad_(True)
            return
        if not hasattr(backbone, 'get_layer_depth'):
            raise ValueError(
                f'freeze={freeze!r} needs a backbone with get_layer_depth, '
                f'which {type(backbone).__name__} lacks; freeze="backbone" '
                'works with any backbone')
        depths = {name: backbone.get_layer_depth(name)
                  for name, _ in backbone.named_parameters()}
        # The first depth is for layers before the blocks, the last one for
        # layers after them.
        most = next(iter(depths.values()))[1] - 2
        if freeze > most:
            raise ValueError(
                f'freeze must be at most {most}, the number of blocks of this '
                f'{type(backbone).__name__}, got {freeze}')
        for name, parameter in backbone.named_parameters():
            if depths[name][0] <= freeze:
                parameter.requires_grad_(False)

    def train(self, mode: bool = True) -> nn.Module:
        """Set the mode of all layers except frozen ones."""
        super().train(mode)
        for module in self._frozen:
            module.eval()
        return self

    @torch.no_grad()
    def frozen_features(self, inputs: Tensor) -> Tensor:
        """Run the frozen layers on clips [B, V, C, T, H, W], to [B, V, *].

        Raises:
            ValueError: If ``freeze`` is neither 'spatial' nor 'backbone', or
                the model has a neck or a backbone with several outputs.
        """
        if self.freeze not in ('backbone', 'spatial') or self.with_neck:
            raise ValueError(
                "frozen features need a model with freeze='spatial' or "
                f"'backbone' and without a neck, got freeze={self.freeze!r}")
        encode = (self.backbone if self.freeze == 'backbone' else
                  self.backbone.encode_frames)
        features = encode(inputs.flatten(0, 1))
        if not isinstance(features, Tensor):
            raise ValueError(
                'frozen features need a backbone that returns a tensor, but '
                f'{type(self.backbone).__name__} returns a '
                f'{type(features).__name__}')
        return features.unflatten(0, inputs.shape[:2])

    def forward(self, inputs: Tensor, data_samples: list | None = None,
                mode: str = 'tensor', **kwargs: Any) -> Any:
        """Run the model, from frozen features of samples that have them."""
        if data_samples and 'frozen_features' in data_samples[0]:
            # Remove the features from the samples, so that metrics and result
            # files do not contain them.
            inputs = FrozenFeatures(torch.stack([
                sample.pop('frozen_features') for sample in data_samples]))
        return super().forward(inputs, data_samples, mode, **kwargs)

    def extract_feat(self, inputs: Tensor | FrozenFeatures,
                     stage: str = 'neck', data_samples: list | None = None,
                     test_mode: bool = False) -> tuple:
        """Extract features, from clips or from frozen features."""
        is_frozen = isinstance(inputs, FrozenFeatures)
        views = (inputs.values if is_frozen else inputs).shape[1]
        number = min(self.pool_clips, views)
        if is_frozen:
            x = inputs.values.flatten(0, 1)
            if self.freeze == 'spatial':
                x = self.backbone.forward_encoded(x)
        elif stage == 'backbone' or number == 1:
            return super().extract_feat(inputs, stage, data_samples, test_mode)
        else:
            x, _ = super().extract_feat(inputs, 'neck', data_samples,
                                        test_mode)
        if views % number:
            raise ValueError(f'pool_clips={number} must divide the number of '
                             f'views of a video, got {views}')
        if number > 1:
            # Join the features [B V, C, T, *] of clips along the time.
            x = x.unflatten(0, (-1, number)).transpose(1, 2).flatten(2, 3)
        if stage == 'head' and self.with_cls_head:
            x = self.cls_head(x)
        return x, {}
