# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A step of streams without the cost of launching its kernels."""
from collections.abc import Mapping

import torch
from torch import Tensor, nn


class StepGraph:
    """The step of a batch of streams, recorded as a CUDA graph.

    Args:
        step: Of :func:`mmvidattn.online.make_stream_step`.
        state: Of the streams, which each call updates, in these tensors.
    """

    @torch.no_grad()
    def __init__(self, step: nn.Module, state: dict[str, Tensor]) -> None:
        example = step.example
        self.features = {
            name: example.new_zeros(len(state['count']), channels)
            for name, channels in step.model.backbone.in_channels.items()
        }
        before = {name: x.clone() for name, x in state.items()}
        # Libraries set themselves up in their first calls, which cannot be
        # recorded.
        stream = torch.cuda.Stream(example.device)
        stream.wait_stream(torch.cuda.current_stream(example.device))
        with torch.cuda.stream(stream):
            for _ in range(3):
                step(self.features, state)
        torch.cuda.current_stream(example.device).wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.scores, _ = step(self.features, state)
        for name, x in before.items():
            state[name].copy_(x)

    def __call__(self, features: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Features [B, channels] of each modality to the step's scores."""
        for name, x in self.features.items():
            x.copy_(features[name])
        self.graph.replay()
        return {name: x.clone() for name, x in self.scores.items()}
