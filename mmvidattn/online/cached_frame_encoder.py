# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

# Function that returns frames by number, as input of a backbone.
LoadFrames = Callable[[Sequence[int]], Tensor]


class CachedFrameEncoder:
    """Encoder of windows of a stream that reuses encodings of frames.

    The encoding of a group of frames
    (:meth:`mmvidattn.backbones.base.BaseBackbone.encode_frames`) is cached by
    the numbers of its frames, and reused when a later window contains the same
    group at any place. Later layers add everything that depends on the place
    in the window, such as temporal positions. A backbone without groups
    computes each window anew.

    Args:
        backbone: Backbone in eval mode.

    Attributes:
        shares: True if the backbone encodes groups of frames independently.
        num_encoded: Number of encoded groups.
        num_shared: Number of groups reused from an earlier window.
    """

    def __init__(self, backbone: nn.Module) -> None:
        self.backbone = backbone
        self.shares = hasattr(backbone, 'frame_groups') and (
            backbone.frame_groups(backbone.num_frames) is not None)
        self.num_encoded = self.num_shared = 0
        self._encodings: dict[tuple[int, ...], Tensor] = {}

    def __len__(self) -> int:
        """Return the number of cached encodings."""
        return len(self._encodings)

    def groups(self, numbers: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the groups of a window's frames, if the backbone has groups.

        Args:
            numbers: Numbers of the frames, in the order of the window.
        """
        return [tuple(numbers[i] for i in group)
                for group in self.backbone.frame_groups(len(numbers))]

    @torch.no_grad()
    def encode(self, numbers: Sequence[int], load: LoadFrames) -> Tensor:
        """Encode the groups of a window that are not cached.

        Args:
            numbers: Numbers of the frames, see :meth:`groups`.
            load: Function that returns normalized frames, [C, n, H, W].

        Returns:
            The encodings, [1, T', *], or the window itself for a backbone
            without groups, [1, C, T, H, W].
        """
        if not self.shares:
            return load(numbers)[None]
        groups = self.groups(numbers)
        # A short window repeats frames, and may contain a group twice.
        new = [group for group in dict.fromkeys(groups)
               if group not in self._encodings]
        self.num_encoded += len(new)
        self.num_shared += len(groups) - len(new)
        for size in {len(group) for group in new}:
            self._encode([g for g in new if len(g) == size], load)
        return torch.stack([self._encodings[g] for g in groups], dim=1)

    @torch.no_grad()
    def features(self, encoded: Tensor) -> Tensor:
        """Compute the features of a window from :meth:`encode`."""
        if self.shares:
            return self.backbone.forward_encoded(encoded)
        return self.backbone(encoded)

    def forget(self, before: int) -> None:
        """Drop encodings of groups with a frame before ``before``."""
        self._encodings = {
            group: x for group, x in self._encodings.items()
            if min(group) >= before}

    def reset(self) -> None:
        """Drop all encodings, for a new stream."""
        self._encodings.clear()

    def _encode(self, groups: Sequence[tuple[int, ...]],
                load: LoadFrames) -> None:
        """Encode groups of one size."""
        frames = load([i for group in groups for i in group])
        clips = frames.unflatten(1, (len(groups), -1)).transpose(0, 1)
        encoded = self.backbone.encode_frames(clips)[:, 0]
        for group, x in zip(groups, encoded.split(1)):
            # Copy, because a view would keep the entire batch in memory.
            self._encodings[group] = x.clone() if len(groups) > 1 else x
