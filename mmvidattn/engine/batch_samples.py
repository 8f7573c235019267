# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Meta information of the samples in a batch."""
from typing import Any

MAX_FILES = 32
# Keys with the name of a video, a folder of frames, or a feature stream.
FILE_KEYS = 'filename', 'frame_dir', 'video_name'


def metainfos(batch: Any) -> list[dict]:
    """Return the meta information of each sample that has any."""
    samples = batch.get('data_samples') if isinstance(batch, dict) else None
    return [sample.metainfo for sample in samples or ()
            if hasattr(sample, 'metainfo')]


def name_files(batch: Any) -> list[str]:
    """Return the files of a batch, as far as known; '...' after 32 of them."""
    names = [next(filter(None, map(metainfo.get, FILE_KEYS)), None)
             for metainfo in metainfos(batch)]
    names = [str(name) for name in names if name]
    return names[:MAX_FILES] + ['...'] * (len(names) > MAX_FILES)
