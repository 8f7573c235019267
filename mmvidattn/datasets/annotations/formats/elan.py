# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""ELAN's .eaf files. A file has one video, and times in milliseconds.

https://www.mpi.nl/tools/elan/EAF_Annotation_Format_3.0_and_ELAN.pdf
"""
import math
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Sequence
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

import numpy as np

from ....utils.files import write_atomically
from ....utils.printable import count
from ..video_segment import VideoSegment, parse_number
from .base import Annotations

SCHEMA = 'http://www.mpi.nl/tools/elan/EAFv3.0.xsd'
ALIGNED, REFERENCE = 'ALIGNABLE_ANNOTATION', 'REF_ANNOTATION'


def recognizes(start: str) -> bool:
    return '<ANNOTATION_DOCUMENT' in start[:1000]


def read(path: Path, tiers: Sequence[str] | None = None) -> Annotations:
    """Read the annotations of all tiers, or of ``tiers``.

    The label of an annotation is its text, or the name of its tier if it has
    no text. Annotations that refer to a parent divide the time of the parent
    evenly. Missing times are interpolated between the known times of their
    tier. After the last known time, an end is unknown, and annotations
    without a start are left out.
    """
    try:
        return _read(path, tiers)
    except ValueError as error:
        raise ValueError(f'{path}: {error}') from None


def _read(path: Path, chosen: Sequence[str] | None) -> Annotations:
    root = _parse(path)
    found = Annotations(format='elan')
    video, offset = _media(root, path.stem, found)
    found.add_video(video)
    tiers = {_get(tier, 'TIER_ID').strip(): [
        one for one in tier.findall('ANNOTATION/*')
        if one.tag in (ALIGNED, REFERENCE)] for tier in root.findall('TIER')}
    for name in chosen or ():
        if name not in tiers:
            raise ValueError(f'there is no tier {name!r}, only '
                             + ', '.join(map(repr, tiers)))
    names = Counter(_id(one) for tier in tiers.values() for one in tier)
    for name, number in names.items():
        if number > 1:
            raise ValueError(f'two annotations have the id {name}')
    spans = _aligned(root, tiers.values())
    _add_references(tiers, names, spans)
    left_out = 0
    for tier, group in tiers.items():
        for one in group if tier in (chosen or tiers) else ():
            name = _id(one)
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
    try:
        root = fromstring(path.read_bytes(), XMLParser(target=_Builder()))
    except FileNotFoundError:
        raise ValueError('file not found') from None
    except (ParseError, LookupError, ValueError) as error:
        # Also an encoding that Python or expat does not know.
        raise ValueError(f'invalid XML: {error}') from None
    if root.tag != 'ANNOTATION_DOCUMENT':
        raise ValueError(f'the root must be ANNOTATION_DOCUMENT, got '
                         f'{root.tag}')
    return root


def _get(one: Element, name: str) -> str:
    """Return a required attribute."""
    if name not in one.attrib:
        where = one.get('ANNOTATION_ID') or one.get('TIER_ID')
        raise ValueError(f'{one.tag} {where or ""} needs the attribute {name}')
    return one.attrib[name]


def _id(one: Element) -> str:
    return _get(one, 'ANNOTATION_ID')


def _seconds(one: Element, name: str) -> float:
    """Return a time in seconds; nan if there is none."""
    text = one.get(name)
    if text is not None and math.isnan(parse_number(text)):
        raise ValueError(f'{name} must be a number, got {text!r}')
    return math.nan if text is None else float(text) / 1000


def _media(root: Element, default: str,
           found: Annotations) -> tuple[str, float]:
    """Return the name of the video, and its time at time 0 of the file."""
    header = root.find('HEADER')
    unit = 'milliseconds' if header is None else header.get(
        'TIME_UNITS', 'milliseconds')
    if unit != 'milliseconds':
        raise ValueError(f'TIME_UNITS must be milliseconds, got {unit!r}')
    media = root.findall('HEADER/MEDIA_DESCRIPTOR')
    media = [one for one in media if one.get('MIME_TYPE', 'video').startswith(
        'video')] or media
    if not media:
        return default, 0.
    found.count(len(media) - 1, 'further media files left out')
    url = media[0].get('RELATIVE_MEDIA_URL') or _get(media[0], 'MEDIA_URL')
    offset = _seconds(media[0], 'TIME_ORIGIN') if media[0].get(
        'TIME_ORIGIN') else 0.
    if '://' not in url or url.startswith('file:'):
        url = unquote(url.removeprefix('file://')).removeprefix('./')
    return url, offset


def _aligned(root: Element, tiers: Iterable[list[Element]]
             ) -> dict[str, tuple[float, float]]:
    """Return the times of annotations with time slots."""
    times = {_get(slot, 'TIME_SLOT_ID'): _seconds(slot, 'TIME_VALUE')
             for slot in root.iter('TIME_SLOT')}
    order = {slot: i for i, slot in enumerate(times)}
    spans = {}
    for tier in tiers:
        slots = {_id(one): [_get(one, f'TIME_SLOT_REF{i}') for i in (1, 2)]
                 for one in tier if one.tag == ALIGNED}
        for name, pair in slots.items():
            for slot in pair:
                if slot not in times:
                    raise ValueError(f'the annotation {name} has no time slot '
                                     f'{slot}')
        used = sorted({slot for pair in slots.values() for slot in pair},
                      key=order.get)
        known = [i for i, slot in enumerate(used)
                 if not math.isnan(times[slot])]
        # Spread missing times evenly between the times around them.
        filled = dict(zip(used, np.interp(
            range(len(used)), known, [times[used[i]] for i in known],
            math.nan, math.nan).tolist() if known else [math.nan] * len(used)))
        spans.update({name: (filled[first], filled[last])
                      for name, (first, last) in slots.items()})
    return spans


def _add_references(tiers: dict[str, list[Element]], names: Container[str],
                    spans: dict[str, tuple[float, float]]) -> None:
    """Add the times of annotations that refer to a parent."""
    groups: dict[tuple[str, str], list[Element]] = defaultdict(list)
    for tier, group in tiers.items():
        for one in group:
            if one.tag == REFERENCE:
                parent = _get(one, 'ANNOTATION_REF')
                if parent not in names:
                    raise ValueError(f'the annotation {_id(one)} has no '
                                     f'parent {parent}')
                groups[parent, tier].append(one)
    while groups:
        ready = [key for key in groups if key[0] in spans]
        if not ready:
            name = _id(next(iter(groups.values()))[0])
            raise ValueError(f'the annotation {name} refers to itself')
        for key in ready:
            children = _in_order(groups.pop(key))
            start, end = spans[key[0]]
            bounds = [start + (end - start) * i / len(children)
                      for i in range(len(children))] + [end]
            spans.update(zip(children, zip(bounds, bounds[1:])))


def _in_order(group: list[Element]) -> list[str]:
    """Return ids in the order of their references to the previous one."""
    after = {one.get('PREVIOUS_ANNOTATION'): _id(one) for one in group}
    order, name = [], after.get(None)
    while name is not None and name not in order:
        order.append(name)
        name = after.get(name)
    return order + [_id(one) for one in group if _id(one) not in order]


def lanes(segments: Iterable[VideoSegment]) -> list[list[VideoSegment]]:
    """Distribute segments to as few lanes as needed to avoid overlap.

    A segment whose end is unknown is the last in its lane.
    """
    lanes: list[list[VideoSegment]] = []
    for segment in sorted(segments, key=lambda one: (
            one.start, one.is_open, one.end)):
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
    for label in annotations.labels:
        for i, lane in enumerate(lanes(
                one for one in annotations.segments
                if one.label == label), 1):
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
            if not one.is_open:
                slot.set('TIME_VALUE', str(max(
                    start + 1, round(one.end * 1000))))
            entry = SubElement(
                SubElement(tier, 'ANNOTATION'), ALIGNED,
                ANNOTATION_ID=f'a{number}', TIME_SLOT_REF1=slots[0],
                TIME_SLOT_REF2=slots[1])
            SubElement(entry, 'ANNOTATION_VALUE').text = one.label
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
