# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""MixClip augmentation for windows of feature streams."""
from typing import Literal

import numpy as np
from mmaction.registry import TRANSFORMS
from mmcv.transforms import BaseTransform

from ...utils.arguments import Fraction, check_arguments
from ..feature_streams import Segment


@TRANSFORMS.register_module()
@check_arguments
class MixClip(BaseTransform):
    """Replace actions in the long memory by actions of other videos.

    MixClip of `TeSTra <https://arxiv.org/abs/2209.09236>`_, Sec. 5.1. It
    changes the indices of rows before they are read: use it before
    :class:`LoadFeatureWindow`.

    With ``mode='crop'``, as in the paper, each action in the long memory is
    replaced with probability ``prob`` by an action of the same class in
    another video. A longer action is cropped at random, and a shorter one is
    padded with its last step.

    With ``mode='single'``, as in the released code, a fraction ``prob`` of the
    actions (rounded down) is replaced. Only longer actions can replace an
    action, and all of its steps become the same step of the longer action.

    Args:
        prob: Probability or fraction of replaced actions. Defaults to 0.5.
        mode: ``'crop'`` or ``'single'``. Defaults to ``'crop'``.
    """

    def __init__(self, prob: Fraction = 0.5,
                 mode: Literal['crop', 'single'] = 'crop') -> None:
        self.prob = prob
        self.mode = mode

    def transform(self, results: dict) -> dict:
        """Change ``long_videos`` and ``long_indices``."""
        steps = results['long_indices'].copy()
        videos = results['long_videos'].copy()
        known = ~results['padding_mask']
        rng = results['rng']
        if known.any():
            first = results['long_indices'][known].min()
            for segment in self._choose(results, first,
                                        results['history_end']):
                other = self._other(results, segment, segment.labels['action'])
                if other is None:
                    continue
                # As released, 'single' includes the step after the end.
                last = segment.end - (self.mode == 'crop')
                inside = known & (results['long_indices'] >= segment.start) & (
                    results['long_indices'] <= last)
                videos[inside] = other.video
                steps[inside] = self._steps(
                    results['long_indices'][inside] - segment.start,
                    segment.end - segment.start, other, rng)
        results.update(long_indices=steps, long_videos=videos)
        return results

    def _choose(self, results: dict, first: int, end: int) -> list[Segment]:
        """Choose actions to replace, between two steps of the video."""
        rng = results['rng']
        actions = [
            segment for segment in results['segments'].of_video[
                results['video']] if first < segment.end <= end]
        if self.mode == 'crop':
            return [s for s in actions if rng.random() < self.prob]
        chosen = rng.choice(
            len(actions), int(self.prob * len(actions)), replace=False)
        return [actions[i] for i in chosen]

    def _other(self, results: dict, segment: Segment,
               action: int) -> Segment | None:
        """Draw a segment of this action from other videos, or return None."""
        candidates = [other for other in results['segments'].of_action[action]
                      if other.video != segment.video and (
                          self.mode == 'crop'
                          or other.duration > segment.duration)]
        return candidates[int(results['rng'].integers(
            len(candidates)))] if candidates else None

    def _steps(self, offsets: np.ndarray, length: int, other: Segment,
               rng: np.random.Generator) -> np.ndarray:
        """Return the step of the other action for each replaced step."""
        room = other.end - other.start
        if self.mode == 'single':
            # Unlike the released code, accept an action without steps.
            return np.full_like(offsets,
                                other.start + rng.integers(max(1, room)))
        shift = rng.integers(max(0, room - length), endpoint=True)
        return other.start + np.minimum(offsets + shift, room - 1)


@TRANSFORMS.register_module()
@check_arguments
class MixClipPlusPlus(MixClip):
    """MixClip that also blends actions of other videos into the work memory.

    MixClip++ of `Memory-and-Anticipation Transformer
    <https://arxiv.org/abs/2308.07893>`_: actions in the work memory, chosen
    with the same ``prob``, are blended with an action of another video, in
    features and targets. The class of the other action is drawn uniformly.

    Args:
        prob: Option of :class:`MixClip`.
        mode: Option of :class:`MixClip`; the released code uses
            ``'single'``.
        weight: Weight of the other action. Defaults to 0.25.
    """

    def __init__(self, prob: Fraction = 0.5,
                 mode: Literal['crop', 'single'] = 'crop',
                 weight: Fraction = 0.25) -> None:
        super().__init__(prob, mode)
        self.weight = weight

    def transform(self, results: dict) -> dict:
        """Change the long memory, and list actions to add in ``blends``."""
        results = super().transform(results)
        work, rng = results['work_indices'], results['rng']
        blends = []
        for segment in self._choose(results, work[0], work[-1] + 1):
            action = rng.choice(sorted(results['segments'].of_action))
            other = self._other(results, segment, action)
            inside = (work >= segment.start) & (work < segment.end)
            if other is None or not inside.any():
                continue
            steps = self._steps(work[inside] - segment.start,
                                segment.end - segment.start, other, rng)
            blends.append(
                (np.flatnonzero(inside), other.video, steps, self.weight))
        results['blends'] = blends
        return results
