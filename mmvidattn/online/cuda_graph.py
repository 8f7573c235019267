# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""CUDA graph of a stream step, which avoids the launches of its kernels."""
from collections.abc import Mapping

import torch
from torch import Tensor, nn


class CUDAGraphStep:
    """Step for a batch of streams, recorded as a CUDA graph.

    Args:
        step: Step of :func:`mmvidattn.online.make_stream_step`.
        state: State of the streams; each call updates these tensors.
    """

    @torch.no_grad()
    def __init__(self, step: nn.Module, state: dict[str, Tensor]) -> None:
        example = step.example
        self.features = step.blank_frames(len(state['count']))
        before = {name: x.clone() for name, x in state.items()}
        # The first calls initialize libraries, and cannot be recorded.
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
        """Return the scores of one frame of each stream, [B, ...] each."""
        for name, x in self.features.items():
            x.copy_(features[name])
        self.graph.replay()
        return {name: x.clone() for name, x in self.scores.items()}
