# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
from mmaction.datasets import SampleFrames
from mmaction.registry import TRANSFORMS

from ...utils.arguments import check_arguments


@TRANSFORMS.register_module()
@check_arguments
class SlowFastSampleFrames(SampleFrames):
    """Sample clips as SlowFast does, and what is derived from its code.

    A clip spans ``clip_len * frame_interval`` frames at ``target_fps``, and
    its frames are spread evenly from the first to the last of these: 16
    frames at an interval of 16 are 17 apart. Frames after the end of a video
    are its last one. In training a clip begins anywhere; in testing clip
    ``k`` of ``K`` begins at ``k / K`` of the way to the last possible start.

    ``SampleFrames`` leaves ``frame_interval`` between two frames, starts
    short videos again, and ends its last test clip with the video.

    Args:
        clip_len: Frames of a clip.
        frame_interval: Frames of the span for each frame of a clip.
        num_clips: Clips of a video.
        target_fps: Rate of the frames that are spanned. None: the video's
            own. A video of unknown rate is taken to have it.
        test_mode: Whether the starts are the fixed ones of testing.
    """

    def __init__(self,
                 clip_len: int,
                 frame_interval: int = 1,
                 num_clips: int = 1,
                 target_fps: float | None = 30,
                 test_mode: bool = False) -> None:
        super().__init__(
            clip_len,
            frame_interval,
            num_clips,
            out_of_bound_opt='repeat_last',
            test_mode=test_mode,
            target_fps=target_fps)

    def transform(self, results: dict) -> dict:
        """Add ``frame_inds`` and what ``SampleFrames`` adds."""
        total = results['total_frames']
        fps = results.get('avg_fps') or self.target_fps
        scale = fps / self.target_fps if self.target_fps else 1
        span = max(self.clip_len * self.frame_interval * scale, 1)
        latest = max(total - span, 0)
        if self.test_mode:
            starts = latest * np.arange(self.num_clips) / self.num_clips
        else:
            starts = np.random.uniform(0, latest, self.num_clips)
        frames = starts[:, None] + np.linspace(0, span - 1, self.clip_len)
        frames = frames.clip(0, total - 1).astype(np.int32)
        results.update(
            frame_inds=frames.ravel() + results['start_index'],
            clip_len=self.clip_len,
            frame_interval=self.frame_interval,
            num_clips=self.num_clips)
        return results
