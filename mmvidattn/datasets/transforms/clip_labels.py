# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
from mmaction.registry import TRANSFORMS
from mmcv.transforms import BaseTransform


@TRANSFORMS.register_module()
class ClipLabels(BaseTransform):
    """Label a clip with the classes that occur in it.

    Used to train the linear video transformer on Charades. Insert it after the
    step that samples frames. Without it, as in testing, a clip has all classes
    of its video.
    """

    def transform(self, results: dict) -> dict:
        """Replace the label.

        Args:
            results: Sample with ``frame_inds`` of one clip, ``segments`` as a
                list of (class, first frame, last frame), and ``label`` [K].

        Returns:
            Sample with ``label``, float32 [K], ones for the clip's classes.
        """
        frames = results['frame_inds'] - results['start_index']
        present = [label for label, first, last in results['segments']
                   if first <= frames.max() and last >= frames.min()]
        label = torch.zeros(len(results['label']))
        label[present] = 1.
        results['label'] = label
        return results
