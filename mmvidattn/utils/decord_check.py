# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Refusal of files of which decord 0.6 returns wrong frames."""
import io
from typing import Any

from .video_reader import FrameTable, once_per_file

# Containers in which decord seeks correctly.
FORMATS = {'mov', 'matroska', 'avi'}


def open_decord(source: str | bytes, num_threads: int = 1) -> Any:
    """Open a file, or its contents, with decord's ``VideoReader``.

    Raises:
        ValueError: If it is damaged, or decord would return wrong frames.
    """
    import decord
    name = 'the video' if isinstance(source, bytes) else source
    try:
        why = _why_wrong(source)
    except ValueError as error:
        raise ValueError(f'{name}: {error}') from error
    if why:
        raise ValueError(f'decord returns wrong frames of {name}, because '
                         f'{why}; decode it with video_backend=pyav')
    return decord.VideoReader(
        io.BytesIO(source) if isinstance(source, bytes) else source,
        num_threads=num_threads)


@once_per_file
def _why_wrong(source: str | bytes) -> str:
    """Return why decord would return wrong frames, or an empty string."""
    table = FrameTable(source)
    if not table.formats & FORMATS:
        return f'it seeks wrongly in {"/".join(sorted(table.formats))} files'
    if table.hidden:
        return f'it counts {table.hidden} frames that an edit list hides'
    if table.skipped:
        return 'the file does not begin with a key frame'
    if table.has_ties:
        return 'some frames lack a time stamp or share one'
    if table.is_open:
        return 'it misplaces frames of open groups of pictures after a seek'
    if 'avi' in table.formats and table.has_b_frames:
        return 'it is an avi with B-frames'
    if table.uncoded:
        return f'it counts {table.uncoded} packets that are not frames'
    return ''
