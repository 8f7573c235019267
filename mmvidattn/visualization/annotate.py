# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Frames under a caption, as a video or as one picture."""
from collections.abc import Iterable, Sequence
from pathlib import Path

import cv2
import decord
import numpy as np

# At this width a caption is readable; smaller frames are enlarged.
MIN_WIDTH = 384
LINE_HEIGHT = 24
SHEET_FRAMES = 8
SHEET_COLUMNS = 4
PICTURES = ('.png', '.jpg', '.jpeg')
VIDEOS = ('.mp4', )


def _caption(lines: Sequence[str], width: int) -> np.ndarray:
    bar = np.full((LINE_HEIGHT * len(lines) + 8, width, 3), 24, np.uint8)
    font = cv2.FONT_HERSHEY_SIMPLEX
    longest = max(cv2.getTextSize(s, font, 1, 1)[0][0] for s in lines)
    scale = min(0.6, (width - 16) / max(longest, 1))
    for i, line in enumerate(lines):
        cv2.putText(bar, line, (8, LINE_HEIGHT * (i + 1) - 4), font, scale,
                    (255, 255, 255), 1, cv2.LINE_AA)
    return bar


def _enlarge(image: np.ndarray) -> np.ndarray:
    """To a readable width; both sides even, as video codecs want them."""
    height, width = image.shape[:2]
    scale = max(1.0, MIN_WIDTH / width)
    size = [max(2, round(scale * side / 2) * 2) for side in (width, height)]
    return cv2.resize(image, size, interpolation=cv2.INTER_LINEAR)


def write_sheet(path: str | Path, frames: np.ndarray,
                lines: Sequence[str]) -> None:
    """Write a picture with some frames of a clip under a caption.

    Args:
        path: The picture, e.g. a png.
        frames: RGB frames [T, H, W, 3], uint8.
        lines: The caption.
    """
    at = np.linspace(0, len(frames) - 1, min(SHEET_FRAMES, len(frames)))
    chosen = list(frames[at.round().astype(int)])
    columns = min(SHEET_COLUMNS, len(chosen))
    chosen += [np.zeros_like(chosen[0])] * (-len(chosen) % columns)
    rows = [np.concatenate(chosen[i:i + columns], axis=1)
            for i in range(0, len(chosen), columns)]
    sheet = _enlarge(np.concatenate(rows))
    image = np.concatenate([_caption(lines, sheet.shape[1]), sheet])
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    if not cv2.imwrite(str(path), image[..., ::-1]):
        raise OSError(f'cannot write {path}')


def _write_video(path: Path, frames: Iterable[np.ndarray], fps: float,
                 lines: Sequence[str]) -> None:
    writer = None
    for frame in map(_enlarge, frames):
        if writer is None:
            caption = _caption(lines, frame.shape[1])
            size = (frame.shape[1], len(caption) + len(frame))
            writer = cv2.VideoWriter(
                str(path), cv2.VideoWriter_fourcc(*'mp4v'), fps, size)
            if not writer.isOpened():
                raise OSError(f'cannot write {path}')
        writer.write(np.concatenate([caption, frame])[..., ::-1])
    writer.release()


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
    if suffix not in PICTURES + VIDEOS:
        raise ValueError(f'{out} must end with one of '
                         f'{", ".join(VIDEOS + PICTURES)}')
    reader = decord.VideoReader(str(video), num_threads=1)
    if suffix in PICTURES:
        at = np.linspace(0, len(reader) - 1, min(SHEET_FRAMES, len(reader)))
        frames = reader.get_batch(at.round().astype(int)).asnumpy()
        write_sheet(out, frames, lines)
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    frames = (reader[i].asnumpy() for i in range(len(reader)))
    _write_video(out, frames, reader.get_avg_fps(), lines)
