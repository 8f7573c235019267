# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

# Frames of a stream by their numbers, to what a backbone reads of them.
LoadFrames = Callable[[Sequence[int]], Tensor]


class WindowEncoder:
    """Runs a backbone on windows of a stream; what they share, it runs once.

    The encoding of a group of frames
    (:meth:`mmvidattn.backbones.base.BaseBackbone.encode_frames`) is kept by
    the numbers of its frames in the stream, and so found again wherever in a
    later window the same frames form a group. What depends on the place in
    the window, such as a position in time, comes after that. A backbone
    without such groups computes each window anew.

    Args:
        backbone: In eval mode.

    Attributes:
        shares: Whether the backbone has groups.
        num_encoded: Groups that were encoded so far.
        num_shared: Groups that had been encoded for an earlier window.
    """

    def __init__(self, backbone: nn.Module) -> None:
        self.backbone = backbone
        self.shares = hasattr(backbone, 'frame_groups') and (
            backbone.frame_groups(backbone.num_frames) is not None)
        self.num_encoded = self.num_shared = 0
        self._encodings: dict[tuple[int, ...], Tensor] = {}

    def __len__(self) -> int:
        """Encodings that are kept."""
        return len(self._encodings)

    def groups(self, numbers: Sequence[int]) -> list[tuple[int, ...]]:
        """The groups of a window's frames, if the backbone has groups.

        Args:
            numbers: Of the T frames, in the order of the window.

        Raises:
            ValueError: If the backbone takes no windows of T frames.
        """
        return [tuple(numbers[i] for i in group)
                for group in self.backbone.frame_groups(len(numbers))]

    @torch.no_grad()
    def encode(self, numbers: Sequence[int], load: LoadFrames) -> Tensor:
        """Encode a window, as far as its groups were not yet encoded.

        Args:
            numbers: Of its frames, as for :meth:`groups`.
            load: Gives frames by their numbers, [C, n, H, W], normalized.

        Returns:
            The encodings, [1, T', *]; without groups the window itself,
            [1, C, T, H, W].
        """
        if not self.shares:
            return load(numbers)[None]
        groups = self.groups(numbers)
        # Frames that a short window repeats may form a group twice.
        new = [group for group in dict.fromkeys(groups)
               if group not in self._encodings]
        self.num_encoded += len(new)
        self.num_shared += len(groups) - len(new)
        for size in {len(group) for group in new}:
            self._encode([g for g in new if len(g) == size], load)
        return torch.stack([self._encodings[g] for g in groups], dim=1)

    @torch.no_grad()
    def features(self, encoded: Tensor) -> Tensor:
        """Features of a window, of the result of :meth:`encode`."""
        if self.shares:
            return self.backbone.forward_encoded(encoded)
        return self.backbone(encoded)

    def forget(self, before: int) -> None:
        """Drop what no window will have that begins at frame ``before``."""
        self._encodings = {
            group: x for group, x in self._encodings.items()
            if min(group) >= before}

    def reset(self) -> None:
        """Forget all frames; another stream begins."""
        self._encodings.clear()

    def _encode(self, groups: Sequence[tuple[int, ...]],
                load: LoadFrames) -> None:
        """Encode groups of one size."""
        frames = load([i for group in groups for i in group])
        clips = frames.unflatten(1, (len(groups), -1)).transpose(0, 1)
        encoded = self.backbone.encode_frames(clips)[:, 0]
        for group, x in zip(groups, encoded.split(1)):
            # Not a view, which would keep those of its batch.
            self._encodings[group] = x.clone() if len(groups) > 1 else x
