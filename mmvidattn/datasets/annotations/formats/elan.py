# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""ELAN's .eaf files. A file has one video, and times in milliseconds.

https://www.mpi.nl/tools/elan/EAF_Annotation_Format_3.0_and_ELAN.pdf
"""
import math
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree.ElementTree import (
    Element,
    ParseError,
    SubElement,
    TreeBuilder,
    XMLParser,
    fromstring,
    indent,
    tostring,
)

from ....utils.files import write_atomically
from ..labeled_videos import count
from ..video_segment import VideoSegment, parse_number
from .base import (
    Annotations,
    ReadOptions,
    is_open,
    label_of,
    labels_of,
)

SCHEMA = 'http://www.mpi.nl/tools/elan/EAFv3.0.xsd'
ALIGNED, REFERENCE = 'ALIGNABLE_ANNOTATION', 'REF_ANNOTATION'


def recognizes(start: str) -> bool:
    return '<ANNOTATION_DOCUMENT' in start[:1000]


def read(path: Path, options: ReadOptions = ReadOptions()) -> Annotations:
    """Read the annotations of all tiers, or of ``options.tiers``.

    The label of an annotation is its text, or the name of its tier if it has
    no text. Annotations that refer to a parent divide the time of the parent
    evenly. Missing times are interpolated between the known times of their
    tier. After the last known time, an end is unknown, and annotations
    without a start are left out.
    """
    root = _parse(path)
    found = Annotations(format='elan')
    video, offset = _media(root, path, found)
    found.add_video(video)
    tiers = {_get(tier, 'TIER_ID', path).strip(): [
        one for one in tier.findall('ANNOTATION/*')
        if one.tag in (ALIGNED, REFERENCE)] for tier in root.findall('TIER')}
    for name in options.tiers or ():
        if name not in tiers:
            raise ValueError(f'{path} has no tier {name!r}, only '
                             + ', '.join(map(repr, tiers)))
    elements: dict[str, Element] = {}
    for one in (one for tier in tiers.values() for one in tier):
        if elements.setdefault(_id(one, path), one) is not one:
            raise ValueError(f'{path}: two annotations have the id '
                             f'{_id(one, path)}')
    spans = _aligned(root, tiers.values(), path)
    _add_references(tiers, elements, spans, path)
    left_out = 0
    for tier, group in tiers.items():
        for one in group if tier in (options.tiers or tiers) else ():
            name = _id(one, path)
            start, end = (time + offset for time in spans[name])
            left_out += math.isnan(start)
            if not math.isnan(start):
                label = (one.findtext('ANNOTATION_VALUE') or '').strip()
                found.segments.append(VideoSegment(
                    name, video, start, end, dict(action=label or tier),
                    f'{path}, annotation {name} of tier {tier}'))
    if left_out:
        found.remarks.append(f'{count(left_out, "annotation")} without a '
                             'start left out')
    return found


class _Builder(TreeBuilder):
    """Builder that refuses document types, which could define entities."""

    def doctype(self, *args: Any) -> None:
        raise ValueError('a document type (<!DOCTYPE>) is not allowed')


def _parse(path: Path) -> Element:
    if not path.is_file():
        raise ValueError(f'file not found: {path}')
    try:
        root = fromstring(path.read_bytes(), XMLParser(target=_Builder()))
    except (ParseError, LookupError, ValueError) as error:
        # Also an encoding that Python or expat does not know.
        raise ValueError(f'{path}: invalid XML: {error}') from None
    if root.tag != 'ANNOTATION_DOCUMENT':
        raise ValueError(f'{path} must have the root ANNOTATION_DOCUMENT, got '
                         f'{root.tag}')
    return root


def _get(one: Element, name: str, path: Path) -> str:
    """Return a required attribute."""
    if name not in one.attrib:
        where = one.get('ANNOTATION_ID') or one.get('TIER_ID')
        raise ValueError(f'{path}: {one.tag} {where or ""} needs the '
                         f'attribute {name}')
    return one.attrib[name]


def _id(one: Element, path: Path) -> str:
    return _get(one, 'ANNOTATION_ID', path)


def _milliseconds(one: Element, name: str, path: Path) -> float:
    """Return a time in seconds; nan if there is none."""
    text = one.get(name)
    if text is not None and math.isnan(parse_number(text)):
        raise ValueError(f'{path}: {name} must be a number, got {text!r}')
    return math.nan if text is None else float(text) / 1000


def _media(root: Element, path: Path,
           found: Annotations) -> tuple[str, float]:
    """Return the name of the video, and its time at time 0 of the file."""
    header = root.find('HEADER')
    unit = 'milliseconds' if header is None else header.get(
        'TIME_UNITS', 'milliseconds')
    if unit != 'milliseconds':
        raise ValueError(f'{path}: TIME_UNITS must be milliseconds, got '
                         f'{unit!r}')
    media = root.findall('HEADER/MEDIA_DESCRIPTOR')
    media = [one for one in media if one.get('MIME_TYPE', 'video').startswith(
        'video')] or media
    if not media:
        return path.stem, 0.
    found.count(len(media) - 1, 'further media files left out')
    url = media[0].get('RELATIVE_MEDIA_URL') or _get(media[0], 'MEDIA_URL',
                                                     path)
    offset = 0.
    if media[0].get('TIME_ORIGIN'):
        offset = _milliseconds(media[0], 'TIME_ORIGIN', path)
    if '://' not in url or url.startswith('file:'):
        url = unquote(url.removeprefix('file://')).removeprefix('./')
    return url, offset


def _aligned(root: Element, tiers: Iterable[list[Element]],
             path: Path) -> dict[str, tuple[float, float]]:
    """Return the times of annotations with time slots."""
    times = {_get(slot, 'TIME_SLOT_ID', path): _milliseconds(
        slot, 'TIME_VALUE', path) for slot in root.iter('TIME_SLOT')}
    order = {slot: i for i, slot in enumerate(times)}
    spans = {}
    for tier in tiers:
        slots = {}
        for one in tier:
            if one.tag == ALIGNED:
                pair = [_get(one, f'TIME_SLOT_REF{i}', path) for i in (1, 2)]
                slots[_id(one, path)] = pair
                for slot in pair:
                    if slot not in times:
                        raise ValueError(f'{path}: the annotation '
                                         f'{_id(one, path)} has no time slot '
                                         f'{slot}')
        used = sorted({slot for pair in slots.values() for slot in pair},
                      key=order.get)
        filled = dict(zip(used, _filled([times[slot] for slot in used])))
        spans.update({name: (filled[first], filled[last])
                      for name, (first, last) in slots.items()})
    return spans


def _filled(times: list[float]) -> list[float]:
    """Spread missing times (nan) evenly between the times around them."""
    known = [i for i, time in enumerate(times) if not math.isnan(time)]
    for first, last in zip(known, known[1:]):
        step = (times[last] - times[first]) / (last - first)
        for i in range(first + 1, last):
            times[i] = times[first] + (i - first) * step
    return times


def _add_references(tiers: dict[str, list[Element]],
                    elements: dict[str, Element],
                    spans: dict[str, tuple[float, float]],
                    path: Path) -> None:
    """Add the times of annotations that refer to a parent."""
    groups: dict[tuple[str, str], list[Element]] = defaultdict(list)
    for tier, group in tiers.items():
        for one in group:
            if one.tag == REFERENCE:
                parent = _get(one, 'ANNOTATION_REF', path)
                if parent not in elements:
                    raise ValueError(f'{path}: the annotation '
                                     f'{_id(one, path)} has no parent '
                                     f'{parent}')
                groups[parent, tier].append(one)
    while groups:
        ready = [key for key in groups if key[0] in spans]
        if not ready:
            name = _id(next(iter(groups.values()))[0], path)
            raise ValueError(f'{path}: the annotation {name} refers to itself')
        for key in ready:
            children = _in_order(groups.pop(key), path)
            start, end = spans[key[0]]
            bounds = [start + (end - start) * i / len(children)
                      for i in range(len(children))] + [end]
            spans.update(zip(children, zip(bounds, bounds[1:])))


def _in_order(group: list[Element], path: Path) -> list[str]:
    """Return ids in the order of their references to the previous one."""
    after = {one.get('PREVIOUS_ANNOTATION'): _id(one, path) for one in group}
    order, name = [], after.get(None)
    while name is not None and name not in order:
        order.append(name)
        name = after.get(name)
    return order + [_id(one, path) for one in group
                    if _id(one, path) not in order]


def lanes(segments: Iterable[VideoSegment]) -> list[list[VideoSegment]]:
    """Distribute segments to as few lanes as needed to avoid overlap.

    A segment whose end is unknown is the last in its lane.
    """
    lanes: list[list[VideoSegment]] = []
    for segment in sorted(segments, key=lambda one: (
            one.start, is_open(one), one.end)):
        for lane in lanes:
            # False for a nan.
            if lane[-1].end <= segment.start:
                lane.append(segment)
                break
        else:
            lanes.append([segment])
    return lanes


def write(annotations: Annotations, path: Path) -> None:
    """Write a tier for each class, or more if its segments overlap.

    An unknown end is a time slot without a time.
    """
    (video, _), = annotations.videos.items()
    root = Element('ANNOTATION_DOCUMENT', {
        'AUTHOR': '', 'DATE': datetime.now().astimezone().isoformat(
            timespec='seconds'), 'FORMAT': '3.0', 'VERSION': '3.0',
        'xmlns:xsi': 'http://www.w3.org/2001/XMLSchema-instance',
        'xsi:noNamespaceSchemaLocation': SCHEMA})
    header = SubElement(root, 'HEADER', MEDIA_FILE='',
                        TIME_UNITS='milliseconds')
    SubElement(
        header, 'MEDIA_DESCRIPTOR', MEDIA_URL=_url(video),
        MIME_TYPE='video/mp4' if video.lower().endswith('.mp4') else 'video/*',
        RELATIVE_MEDIA_URL=_url(video))
    order = SubElement(root, 'TIME_ORDER')
    tiers: dict[str, list[VideoSegment]] = {}
    for label in labels_of(annotations.segments):
        for i, lane in enumerate(lanes(
                one for one in annotations.segments
                if label_of(one) == label), 1):
            name = label if i == 1 else f'{label} ({i})'
            while name in tiers:
                name += "'"
            tiers[name] = lane
    number = 0
    for name, lane in tiers.items():
        tier = SubElement(root, 'TIER', LINGUISTIC_TYPE_REF='default-lt',
                          TIER_ID=name)
        for one in lane:
            number += 1
            slots = [f'ts{2 * number - 1}', f'ts{2 * number}']
            start = round(one.start * 1000)
            SubElement(order, 'TIME_SLOT', TIME_SLOT_ID=slots[0],
                       TIME_VALUE=str(start))
            slot = SubElement(order, 'TIME_SLOT', TIME_SLOT_ID=slots[1])
            if not is_open(one):
                slot.set('TIME_VALUE', str(max(
                    start + 1, round(one.end * 1000))))
            entry = SubElement(
                SubElement(tier, 'ANNOTATION'), ALIGNED,
                ANNOTATION_ID=f'a{number}', TIME_SLOT_REF1=slots[0],
                TIME_SLOT_REF2=slots[1])
            SubElement(entry, 'ANNOTATION_VALUE').text = label_of(one)
    SubElement(header, 'PROPERTY', NAME='lastUsedAnnotationId').text = str(
        number)
    SubElement(root, 'LINGUISTIC_TYPE', GRAPHIC_REFERENCES='false',
               LINGUISTIC_TYPE_ID='default-lt', TIME_ALIGNABLE='true')
    indent(root)
    write_atomically(path, '<?xml version="1.0" encoding="UTF-8"?>\n'
                     + tostring(root, encoding='unicode') + '\n')


def _url(video: str) -> str:
    if '://' in video:
        return video
    # Only the percent sign has a meaning in the address.
    path = video.replace('%', '%25')
    return f'file://{path}' if path.startswith('/') else f'./{path}'
