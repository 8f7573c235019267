# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""CVAT's XML files, "CVAT for video 1.1" and "CVAT for images 1.1".

A file has one video and counts frames from 0. A track is visible in the frames
of a segment, and has ``outside="1"`` in the frame after it.
https://docs.cvat.ai/docs/manual/advanced/xml_format/
"""
import math
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from ....utils.files import write_atomically
from ..video_segment import VideoSegment, parse_number
from .base import (
    Annotations,
    FrameRate,
    frames_of,
    is_open,
    is_point,
    label_of,
    labels_of,
    subset_of,
)
from .xml_file import XmlElement, add, format_xml, read_xml

SHAPES = 'box', 'polygon', 'polyline', 'points', 'cuboid', 'skeleton', 'mask'
# Attributes of a track that we write; CVAT keeps them if its labels have them.
SCORE, KIND = 'score', 'segment'
POINT, OPEN = 'point', 'end unknown'


def recognizes(start: str) -> bool:
    return '<annotations' in start[:1000]


def read(path: Path, frame_rate: FrameRate) -> Annotations:
    """Read the tracks of a video, and the tags of its frames.

    Each time that a track is visible is a segment. Consecutive frames with
    the same tag are a segment.
    """
    root = read_xml(path, 'annotations')
    meta = root.find('meta') or root
    video = next(filter(None, map(meta.words, (
        'source', '*/source', '*/name'))), path.stem)
    found = Annotations(format='cvat')
    fps = meta.find('*/fps')
    found.add_video(
        video, fps=fps and _positive(fps),
        width=_size(meta, 'width'), height=_size(meta, 'height'))
    subset = meta.words('*/subset') or 'all'
    tracks = list(root.all('track'))
    images = list(root.all('image'))
    step = _step(meta)
    spans = [span for track in tracks for span in _visible(track, step)]
    spans += _tagged(images, step)
    if spans:
        rate = frame_rate(video, found.videos[video].fps, str(path))
    for name, label, start, stop, attributes, element in spans:
        kind = attributes.get(KIND, '')
        end = {POINT: start / rate, OPEN: math.nan}.get(kind, stop / rate)
        found.segments.append(VideoSegment(
            name, video, start / rate, end, dict(action=label), element.where,
            subset, (start, stop), _score(attributes, element)))
    found.count(
        sum(1 for image in images for _ in image.all(*SHAPES)),
        'shapes of single frames left out: only tags and tracks are segments')
    return found


def _positive(element: XmlElement) -> float:
    value = parse_number(element.text)
    if not value > 0:
        element.fail(f'expected a positive number, got {element.text!r}')
    return value


def _size(meta: XmlElement, name: str) -> int | None:
    element = meta.find(f'*/original_size/{name}')
    return None if element is None else round(_positive(element))


def _step(meta: XmlElement) -> int:
    """Return the distance of the frames that the task uses."""
    words = meta.words('*/frame_filter').replace(' ', '')
    number = words.removeprefix('step=')
    return int(number) if number.isdecimal() and int(number) else 1


Span = tuple[str, str, int, int, dict[str, str], XmlElement]


def _visible(track: XmlElement, step: int) -> Iterator[Span]:
    """Yield the parts of a track in which it is visible."""
    name, label = f'track {track.attributes.get("id", track.line)}', _label(
        track)

    def span(start: int, shape: XmlElement, stop: int) -> Span:
        return name, label, start, stop, _attributes(track, shape), shape

    first = last = None
    for shape in track.all(*SHAPES):
        frame = shape.natural('frame')
        if last is not None and frame <= last:
            shape.fail(f'frame {frame} must come after frame {last}')
        outside = shape.attributes.get('outside', '0')
        if outside not in '01':
            shape.fail(f'outside must be 0 or 1, got {outside!r}')
        if outside == '0':
            first = first or (frame, shape)
        elif first is not None:
            yield span(*first, frame)
            first = None
        last = frame
    if first is not None:
        yield span(*first, last + step)


def _tagged(images: list[XmlElement], step: int) -> Iterator[Span]:
    """Yield the runs of consecutive frames with the same tag."""
    frames: dict[str, dict[int, XmlElement]] = defaultdict(dict)
    for image in images:
        for tag in image.all('tag'):
            frames[_label(tag)][image.natural('id')] = tag
    for label, tags in frames.items():
        first = last = None
        for frame in sorted(tags):
            if first is not None and frame > last + step:
                yield (f'tag {label} {first}', label, first, last + step, {},
                       tags[first])
                first = None
            first = frame if first is None else first
            last = frame
        yield f'tag {label} {first}', label, first, last + step, {}, tags[
            first]


def _label(element: XmlElement) -> str:
    label = ' '.join(element['label'].split())
    if not label:
        element.fail('the label is empty')
    return label


def _attributes(*elements: XmlElement) -> dict[str, str]:
    return {one.attributes.get('name', ''): one.text.strip()
            for element in elements for one in element.all('attribute')}


def _score(attributes: dict[str, str], element: XmlElement) -> float | None:
    text = attributes.get(SCORE)
    score = parse_number(text) if text else None
    if text and math.isnan(score):
        element.fail(f'score must be a number, got {text!r}')
    return score


def write(annotations: Annotations, path: Path, frame_rate: FrameRate) -> None:
    """Write a track of boxes as large as the frame for each segment.

    Labels have the attributes ``score`` and ``segment``, which contain the
    score, and ``point`` or ``end unknown``. CVAT's labels need these
    attributes to keep them.
    """
    (video, info), = annotations.videos.items()
    segments = annotations.segments
    fps = frame_rate(video, info.fps, f'video {video}')
    width, height = info.width or 1, info.height or 1
    root = ElementTree.Element('annotations')
    add(root, 'version', '1.1')
    task = add(add(root, 'meta'), 'task')
    add(task, 'name', video)
    if info.duration is not None:
        add(task, 'size', round(info.duration * fps))
    add(task, 'mode', 'interpolation')
    if subset_of(segments) != 'all':
        add(task, 'subset', subset_of(segments))
    add(task, 'fps', repr(fps))
    labels = add(task, 'labels')
    for label in labels_of(segments):
        one = add(labels, 'label')
        add(one, 'name', label)
        attributes = add(one, 'attributes')
        for name in SCORE, KIND:
            attribute = add(attributes, 'attribute')
            for key, value in dict(name=name, mutable='False',
                                   input_type='text', default_value='',
                                   values='').items():
                add(attribute, key, value)
    size = add(task, 'original_size')
    add(size, 'width', width)
    add(size, 'height', height)
    add(task, 'source', video)
    for i, segment in enumerate(segments):
        track = add(root, 'track', id=i, label=label_of(segment),
                    source='file')
        start, stop = frames_of(segment, fps)
        for frame, outside in (start, 0), (max(stop, start + 1), 1):
            box = add(track, 'box', frame=frame, outside=outside, occluded=0,
                      keyframe=1, xtl='0.00', ytl='0.00', xbr=f'{width:.2f}',
                      ybr=f'{height:.2f}', z_order=0)
            if segment.score is not None:
                add(box, 'attribute', repr(segment.score), name=SCORE)
            if is_point(segment) or is_open(segment):
                add(box, 'attribute', POINT if is_point(segment) else OPEN,
                    name=KIND)
    write_atomically(path, format_xml(root))
