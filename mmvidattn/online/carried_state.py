# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""State that training carries from a clip to the video's next clip."""
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

State = dict[str, Tensor]


class ClipPlace(NamedTuple):
    """Steps of a clip in its video; ``end`` is exclusive."""
    video: str
    start: int
    end: int


class CarriedState:
    """Store of a causal network's state between two training batches.

    It holds the state after the clips of the latest batch. A clip continues
    from this state if it starts where a clip of that batch ended, in any row.
    Any other clip starts from the initial state. A skipped or repeated clip
    therefore never continues from another video's state.
    """

    def __init__(self) -> None:
        self._ends: list[tuple[str, int]] = []
        self._state: State = {}

    def take(self, clips: Sequence[ClipPlace],
             initial: Mapping[str, Tensor]) -> State:
        """Return the state from which each clip of a batch starts.

        Args:
            clips: Places of the clips.
            initial: Initial state of a batch of this size, [B, ...] each.

        Returns:
            State without gradients, [B, ...] each.
        """
        rows = [(i, self._ends.index((clip.video, clip.start)))
                for i, clip in enumerate(clips)
                if (clip.video, clip.start) in self._ends]
        if not rows:
            return dict(initial)
        here, there = (torch.tensor(part) for part in zip(*rows))
        state = {}
        for name, x in initial.items():
            x = x.clone()
            x[here.to(x.device)] = self._state[name].to(x)[
                there.to(x.device)]
            state[name] = x
        return state

    def keep(self, clips: Sequence[ClipPlace],
             state: Mapping[str, Tensor]) -> None:
        """Keep the state after the clips of a batch, without gradients."""
        self._ends = [(clip.video, clip.end) for clip in clips]
        self._state = {name: x.detach() for name, x in state.items()}

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint, on the CPU."""
        return dict(ends=[list(end) for end in self._ends],
                    state={name: x.cpu() for name, x in self._state.items()})

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a state of :meth:`state_dict`."""
        self._ends = [(video, end) for video, end in state_dict['ends']]
        self._state = dict(state_dict['state'])
