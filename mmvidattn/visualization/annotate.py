# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Videos and images of captioned frames."""
import io
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np

from ..utils.frame_times import ConstantRate
from ..utils.printable import echo
from ..utils.video_reader import VideoReader
from .style import class_color

# A caption is readable at this width; smaller frames are enlarged.
MIN_WIDTH = 480
LINE_HEIGHT = 24
SHEET_FRAMES = 8
SHEET_COLUMNS = 4
TILE_WIDTH = 192
GAP = 4
PICTURES = ('.png', '.jpg', '.jpeg')
OUTPUTS = ('.mp4', *PICTURES)
# Encoders, the best first: two of H.264, and one of MPEG-4 Part 2, which
# browsers do not play. PyAV's wheels have the first one; builds without GPL
# code may lack it.
ENCODERS = dict(
    libx264=dict(preset='veryfast', crf='23'), libopenh264=dict(b='4M'),
    mpeg4=dict(b='4M'))
# For rates such as 30000 / 1001; MPEG-4 has at most 65535 ticks per second.
MAX_DENOMINATOR, MAX_TICKS = 1001, 65535
# A line of a caption, or a line about an action and its number, which is
# written in the color of the action.
Line = str | tuple[str, int]


def _caption(lines: Sequence[Line], width: int) -> np.ndarray:
    colors = ['#ffffff' if isinstance(line, str) else
              class_color(line[1], is_dark=True) for line in lines]
    lines = [line if isinstance(line, str) else line[0] for line in lines]
    bar = np.full((LINE_HEIGHT * len(lines) + 8, width, 3), 24, np.uint8)
    font = cv2.FONT_HERSHEY_SIMPLEX
    scale = 0.6
    while max(cv2.getTextSize(line, font, scale, 1)[0][0]
              for line in lines) > width - 16:
        scale *= 0.9
    for i, (line, color) in enumerate(zip(lines, colors)):
        cv2.putText(bar, line, (8, LINE_HEIGHT * (i + 1) - 4), font, scale,
                    [*bytes.fromhex(color[1:])], 1, cv2.LINE_AA)
    return bar


def _to_width(image: np.ndarray, width: int) -> np.ndarray:
    """Resize an image, to even sides because video codecs need them."""
    scale = width / image.shape[1]
    size = [max(2, round(n * scale / 2) * 2) for n in image.shape[1::-1]]
    method = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    return cv2.resize(image, size, interpolation=method)


def sheet_indices(number: int) -> np.ndarray:
    """Return up to 8 indices of ``number`` frames, spread evenly."""
    return np.linspace(0, number - 1, min(SHEET_FRAMES, number)
                       ).round().astype(int)


def write_sheet(path: str | Path, frames: np.ndarray,
                lines: Sequence[Line]) -> None:
    """Write an image with up to 8 frames of a clip below a caption.

    Args:
        path: Path of the image, e.g. a png.
        frames: RGB frames [T, H, W, 3], uint8.
        lines: Lines of the caption.
    """
    tiles = [_to_width(frame, TILE_WIDTH)
             for frame in frames[sheet_indices(len(frames))]]
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


class _WholeWrites(io.FileIO):
    """File whose writes are complete or raise an ``OSError``."""

    def write(self, data: bytes) -> int:
        """Write all of the data."""
        rest = memoryview(data)
        while rest:
            rest = rest[super().write(rest):]
        return len(data)


class VideoWriter:
    """Writer of captioned frames to an mp4 file.

    As a context manager, the writer deletes an incomplete file. A line on
    stderr reports that the file is not in H.264.

    Args:
        path: Path of the video.
        fps: Frames per second.

    Raises:
        OSError: If the file cannot be written.
    """

    def __init__(self, path: str | Path, fps: float) -> None:
        self.path = Path(path)
        self.fps = fps
        self._file: av.container.OutputContainer | None = None

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

    def write(self, frame: np.ndarray, lines: Sequence[Line]) -> None:
        """Write an RGB frame [H, W, 3], uint8, below a caption.

        Later frames are resized to the size of the first one.
        """
        frame = _to_width(frame, max(MIN_WIDTH, frame.shape[1]))
        image = np.concatenate([_caption(lines, frame.shape[1]), frame])
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Open the file here, because PyAV leaks the handle if it cannot
            # write the header.
            self._output = _WholeWrites(self.path, 'w')
            try:
                self._start(*image.shape[1::-1])
            except BaseException:
                self._output.close()
                raise
        size = self._stream.width, self._stream.height
        if image.shape[1::-1] != size:
            image = cv2.resize(image, size)
        self._file.mux(self._stream.encode(
            av.VideoFrame.from_ndarray(image, 'rgb24')))

    def _start(self, width: int, height: int) -> None:
        # Put the index first, so that players can start during a download.
        file = av.open(self._output, 'w', format='mp4',
                       options=dict(movflags='faststart'))
        encoder = next(name for name in ENCODERS
                       if name in av.codecs_available)
        if encoder == 'mpeg4':
            echo(f'note: {self.path} is in MPEG-4 Part 2, because PyAV lacks '
                 'an H.264 encoder; browsers may not play it',
                 file=sys.stderr)
        rate = Fraction(self.fps).limit_denominator(
            min(MAX_DENOMINATOR, int(MAX_TICKS / self.fps)))
        self._stream = file.add_stream(encoder, rate=rate,
                                       options=ENCODERS[encoder])
        self._stream.width, self._stream.height = width, height
        self._stream.pix_fmt = 'yuv420p'
        # Leave the other cores to the model of a live run.
        self._stream.codec_context.thread_count = 1
        # Write the header now, so that disk errors are raised here.
        file.start_encoding()
        self._file = file

    def close(self) -> None:
        """Finish the file, which players need.

        Raises:
            OSError: If the file cannot be written. It is closed anyway.
        """
        if self._file is not None:
            with self._output:
                try:
                    self._file.mux(self._stream.encode(None))
                    self._file.close()
                except av.error.PyAVCallbackError as error:
                    # After another failed write.
                    raise OSError(f'cannot write {self.path}') from error


def annotate_video(video: str | Path, out: str | Path,
                   lines: Sequence[Line] | Callable[[float], Sequence[Line]]
                   ) -> None:
    """Write a captioned copy of a video, or an image of its frames.

    Args:
        video: Path of the video.
        out: Path to write: .mp4 for a video, .png or .jpg for an image.
        lines: Lines of the caption. For a video, this can be a function that
            maps a time in seconds to a fixed number of lines.
    """
    out = Path(out)
    suffix = out.suffix.lower()
    if suffix not in OUTPUTS:
        raise ValueError(f'{out} must end with one of {", ".join(OUTPUTS)}')
    reader = VideoReader(video)
    if suffix in PICTURES:
        write_sheet(out, reader.get_batch(sheet_indices(len(reader))), lines)
        return
    ticks = ConstantRate(reader)
    with VideoWriter(out, ticks.fps) as writer:
        for i in range(len(ticks)):
            writer.write(reader[int(ticks.frames(i))],
                         lines(i / ticks.fps) if callable(lines) else lines)
