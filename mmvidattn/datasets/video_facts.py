# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Videos and images of a folder, and facts of a video file."""
import os
import re
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np

from ..utils.video_reader import VideoReader

IMAGE_SUFFIXES = '.bmp', '.jpeg', '.jpg', '.png', '.webp'

VIDEO_SUFFIXES = ('.3gp', '.asf', '.avi', '.flv', '.gif', '.h264', '.m2ts',
                  '.m4v', '.mkv', '.mov', '.mp4', '.mpeg', '.mpg', '.mts',
                  '.ogv', '.ts', '.vob', '.webm', '.wmv')


class VideoFacts(NamedTuple):
    """Facts of a video file; its size in pixels, and its average rate."""
    frames: int
    fps: float
    width: int
    height: int
    # Seconds from the start of the file to the end of its last frame.
    duration: float


def list_videos(folder: str | Path) -> list[str]:
    """Return the video files in a folder and its subfolders, sorted.

    Raises:
        ValueError: If there are none.
    """
    root = str(Path(folder))
    videos = [f'{parent}{os.sep}{name}' for parent, _, names in os.walk(root)
              for name in names
              if os.path.splitext(name)[1].lower() in VIDEO_SUFFIXES]
    if not videos:
        raise ValueError(f'no videos in the folder {folder}; expected files '
                         f'with suffix {", ".join(VIDEO_SUFFIXES)}')
    if root == os.curdir:
        videos = [path[2:] for path in videos]
    # The order of paths: by folder, then by name.
    return sorted(videos, key=lambda path: path.replace(os.sep, '\0'))


def read_facts(path: str | Path) -> VideoFacts:
    """Open a video, decode its first frame, and return its facts."""
    reader = VideoReader(path)
    height, width = reader[0].shape[:2]
    return VideoFacts(len(reader), reader.get_avg_fps(), width, height,
                      float(reader.times[-1]))


def list_images(folder: str | Path) -> list[Path]:
    """List the images of a folder, ordered by the numbers in their names.

    Raises:
        ValueError: If it has no images.
    """
    paths = sorted((path for path in Path(folder).iterdir()
                    if path.suffix.lower() in IMAGE_SUFFIXES), key=_numbers)
    if not paths:
        raise ValueError(f'no frames in the folder {folder}; names must end '
                         f'with one of {", ".join(IMAGE_SUFFIXES)}')
    return paths


def read_image(path: Path) -> np.ndarray:
    """Read an image, RGB, uint8 [H, W, 3]."""
    image = cv2.imread(str(path))
    if image is None:
        raise ValueError(f'{path.name} could not be read')
    return cv2.cvtColor(image, cv2.COLOR_BGR2RGB)


def _numbers(path: Path) -> list[int | str]:
    """Return a key that sorts frame 10 after frame 9."""
    return [int(part) if part.isdecimal() else part
            for part in re.split(r'(\d+)', path.name)]
