# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
from mmaction.registry import TRANSFORMS
from mmcv.transforms import BaseTransform


@TRANSFORMS.register_module()
class ClipLabels(BaseTransform):
    """Label a clip with the classes seen from its first to its last frame.

    As the linear video transformer is trained on Charades. Put it behind the
    step that samples the frames; without it a clip has the classes of its
    whole video, as in testing.
    """

    def transform(self, results: dict) -> dict:
        """Replace the label.

        Args:
            results: ``frame_inds`` of one clip; ``segments``, of each a class,
                its first and its last frame; ``label``, [K].

        Returns:
            It with ``label``, float32 [K], ones for the classes of the clip.
        """
        frames = results['frame_inds'] - results['start_index']
        seen = [label for label, first, last in results['segments']
                if first <= frames.max() and last >= frames.min()]
        label = torch.zeros(len(results['label']))
        label[seen] = 1.
        results['label'] = label
        return results
