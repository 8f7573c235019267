# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Frames under a caption, as a video or as one picture."""
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from ..utils.frame_times import ConstantRate
from ..utils.video_readers import open_video
from .mp4 import H264File, Mpeg4File, open_mp4

# At this width a caption is readable; smaller frames are enlarged.
MIN_WIDTH = 480
LINE_HEIGHT = 24
SHEET_FRAMES = 8
SHEET_COLUMNS = 4
TILE_WIDTH = 192
GAP = 4
PICTURES = ('.png', '.jpg', '.jpeg')
OUTPUTS = ('.mp4', *PICTURES)


def _caption(lines: Sequence[str], width: int) -> np.ndarray:
    bar = np.full((LINE_HEIGHT * len(lines) + 8, width, 3), 24, np.uint8)
    font = cv2.FONT_HERSHEY_SIMPLEX
    scale = 0.6
    while max(cv2.getTextSize(line, font, scale, 1)[0][0]
              for line in lines) > width - 16:
        scale *= 0.9
    for i, line in enumerate(lines):
        cv2.putText(bar, line, (8, LINE_HEIGHT * (i + 1) - 4), font, scale,
                    (255, 255, 255), 1, cv2.LINE_AA)
    return bar


def _to_width(image: np.ndarray, width: int) -> np.ndarray:
    """Resize; both sides get even, as video codecs want them."""
    scale = width / image.shape[1]
    size = [max(2, round(n * scale / 2) * 2) for n in image.shape[1::-1]]
    method = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    return cv2.resize(image, size, interpolation=method)


def write_sheet(path: str | Path, frames: np.ndarray,
                lines: Sequence[str]) -> None:
    """Write a picture with some frames of a clip under a caption.

    Args:
        path: The picture, e.g. a png.
        frames: RGB frames [T, H, W, 3], uint8.
        lines: The caption.
    """
    at = np.linspace(0, len(frames) - 1, min(SHEET_FRAMES, len(frames)))
    tiles = [_to_width(frame, TILE_WIDTH)
             for frame in frames[at.round().astype(int)]]
    columns = min(SHEET_COLUMNS, len(tiles))
    tiles += [np.zeros_like(tiles[0])] * (-len(tiles) % columns)
    tiles = [np.pad(tile, ((0, GAP), (0, GAP), (0, 0)), constant_values=255)
             for tile in tiles]
    sheet = np.concatenate([np.concatenate(tiles[i:i + columns], axis=1)
                            for i in range(0, len(tiles), columns)])
    image = np.concatenate([_caption(lines, sheet.shape[1]), sheet])
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    if not cv2.imwrite(str(path), image[..., ::-1]):
        raise OSError(f'cannot write {path}')


class VideoWriter:
    """Writes frames under captions to an mp4, as they come.

    It is H.264 where PyAV is there (:func:`open_mp4`). As a context manager
    it deletes a file that could not be finished.

    Args:
        path: The video.
        fps: Frames a second.
    """

    def __init__(self, path: str | Path, fps: float) -> None:
        self.path = Path(path)
        self.fps = fps
        self._writer: H264File | Mpeg4File | None = None
        self._size: tuple[int, int] | None = None

    def __enter__(self) -> 'VideoWriter':
        return self

    def __exit__(self, error_type: type | None, *args: object) -> None:
        is_complete = False
        try:
            self.close()
            is_complete = error_type is None
        finally:
            if not is_complete:
                self.path.unlink(missing_ok=True)

    def write(self, frame: np.ndarray, lines: Sequence[str]) -> None:
        """Write an RGB frame [H, W, 3], uint8, under some lines.

        The first frame decides on the size of all.
        """
        frame = _to_width(frame, max(MIN_WIDTH, frame.shape[1]))
        image = np.concatenate([_caption(lines, frame.shape[1]), frame])
        if self._writer is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._size = image.shape[1::-1]
            self._writer = open_mp4(self.path, self.fps, self._size)
        elif image.shape[1::-1] != self._size:
            image = cv2.resize(image, self._size)
        self._writer.write(image)

    def close(self) -> None:
        """Finish the file; without this it cannot be played."""
        if self._writer is not None:
            self._writer.close()


def annotate_video(video: str | Path, out: str | Path,
                   lines: Sequence[str]) -> None:
    """Write a video again under a caption, or a picture of it.

    Args:
        video: The video.
        out: What to write: an .mp4, or a .png or .jpg with some frames.
        lines: The caption.
    """
    out = Path(out)
    suffix = out.suffix.lower()
    if suffix not in OUTPUTS:
        raise ValueError(f'{out} must end with one of {", ".join(OUTPUTS)}')
    reader = open_video(video)
    if suffix in PICTURES:
        at = np.linspace(0, len(reader) - 1, min(SHEET_FRAMES, len(reader)))
        frames = reader.get_batch(at.round().astype(int))
        write_sheet(out, frames, lines)
        return
    ticks = ConstantRate(reader)
    with VideoWriter(out, ticks.fps) as writer:
        for i in range(len(ticks)):
            writer.write(reader[int(ticks.frames(i))], lines)
