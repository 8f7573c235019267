# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""ELAN's .eaf files. A file has one video, and times in milliseconds.

https://www.mpi.nl/tools/elan/EAF_Annotation_Format_3.0_and_ELAN.pdf
"""
import math
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

from ....utils.files import write_atomically
from ..video_segment import VideoSegment
from .base import (
    Annotations,
    FrameRate,
    is_open,
    label_of,
    labels_of,
    lanes,
)
from .xml_file import XmlElement, add, format_xml, read_xml

SCHEMA = 'http://www.mpi.nl/tools/elan/EAFv3.0.xsd'
Spans = dict[str, tuple[float, float]]


def recognizes(start: str) -> bool:
    return '<ANNOTATION_DOCUMENT' in start[:1000]


def read(path: Path, frame_rate: FrameRate | None = None) -> Annotations:
    """Read the annotations of all tiers.

    The label of an annotation is its text, or the name of its tier if it has
    no text. Annotations that refer to a parent divide the time of the parent
    evenly. A missing time is interpolated between known times; an end without
    a later known time is unknown.
    """
    root = read_xml(path, 'ANNOTATION_DOCUMENT')
    found = Annotations(format='elan')
    video, offset = _media(root, path, found)
    found.add_video(video)
    slots = _slots(root)
    elements, tiers = {}, {}
    for tier in root.all('TIER'):
        title = tier['TIER_ID'].strip()
        for entry in tier.all('ANNOTATION'):
            for one in entry.all('ALIGNABLE_ANNOTATION', 'REF_ANNOTATION'):
                name = one['ANNOTATION_ID']
                if name in elements:
                    one.fail(f'the annotation {name} is already defined in '
                             f'line {elements[name].line}')
                elements[name], tiers[name] = one, title
    spans = _aligned(elements, slots)
    _add_references(elements, tiers, spans)
    for name, one in elements.items():
        start, end = (time + offset for time in spans[name])
        label = one.words('ANNOTATION_VALUE') or tiers[name]
        found.segments.append(VideoSegment(
            name, video, start, end, dict(action=label), one.where))
    return found


def _media(root: XmlElement, path: Path,
           found: Annotations) -> tuple[str, float]:
    """Return the name of the video, and its time at time 0 of the file."""
    header = root.find('HEADER')
    if header is not None and header.attributes.get(
            'TIME_UNITS', 'milliseconds') != 'milliseconds':
        header.fail('TIME_UNITS must be milliseconds, got '
                    f'{header["TIME_UNITS"]!r}')
    media = [] if header is None else [
        one for one in header.all('MEDIA_DESCRIPTOR')]
    media = [one for one in media if one.attributes.get(
        'MIME_TYPE', 'video').startswith('video')] or media
    if not media:
        return path.stem, 0.
    found.count(len(media) - 1, 'further media files left out')
    url = media[0].attributes.get('RELATIVE_MEDIA_URL') or media[0][
        'MEDIA_URL']
    origin = media[0].attributes.get('TIME_ORIGIN')
    offset = media[0].number('TIME_ORIGIN') / 1000 if origin else 0.
    if '://' not in url or url.startswith('file:'):
        url = unquote(url.removeprefix('file://')).removeprefix('./')
    return url, offset


def _slots(root: XmlElement) -> dict[str, float]:
    """Return the time of each slot in seconds; nan if it is missing."""
    slots = {}
    order = root.find('TIME_ORDER')
    for slot in [] if order is None else order.all('TIME_SLOT'):
        has_value = 'TIME_VALUE' in slot.attributes
        slots[slot['TIME_SLOT_ID']] = slot.number(
            'TIME_VALUE') / 1000 if has_value else math.nan
    return slots


def _aligned(elements: dict[str, XmlElement],
             slots: dict[str, float]) -> Spans:
    """Return the times of annotations with time slots."""
    ends = {}
    following: dict[str, str] = {}
    for name, one in elements.items():
        if one.tag != 'ALIGNABLE_ANNOTATION':
            continue
        pair = one['TIME_SLOT_REF1'], one['TIME_SLOT_REF2']
        for slot in pair:
            if slot not in slots:
                one.fail(f'no time slot {slot}')
        ends[name] = pair
        following.setdefault(pair[0], pair[1])
    known = dict(slots)
    for first in [slot for slot in following if not math.isnan(slots[slot])]:
        # A chain of annotations up to the next known time.
        chain = [first]
        while chain[-1] in following and following[chain[-1]] not in chain:
            chain.append(following[chain[-1]])
            if not math.isnan(slots[chain[-1]]):
                break
        start, end = slots[first], slots[chain[-1]]
        for i, slot in enumerate(chain[1:-1], 1):
            known[slot] = start + (end - start) * i / (len(chain) - 1)
    spans = {}
    for name, (first, last) in ends.items():
        if math.isnan(known[first]):
            elements[name].fail(f'the time slot {first} has no time')
        spans[name] = known[first], known[last]
    return spans


def _add_references(elements: dict[str, XmlElement],
                    tiers: dict[str, str], spans: Spans) -> None:
    """Add the times of annotations that refer to a parent."""
    children: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, one in elements.items():
        if one.tag == 'REF_ANNOTATION':
            parent = one['ANNOTATION_REF']
            if parent not in elements:
                one.fail(f'no annotation {parent}')
            children[parent, tiers[name]].append(name)
    groups = dict(children)
    while groups:
        ready = [key for key in groups if key[0] in spans]
        if not ready:
            elements[next(iter(groups.values()))[0]].fail(
                'the annotation refers to itself')
        for key in ready:
            names = _in_order(groups.pop(key), elements)
            start, end = spans[key[0]]
            length = (end - start) / len(names)
            for i, name in enumerate(names):
                spans[name] = start + i * length, start + (i + 1) * length
            if len(names) == 1:
                spans[names[0]] = start, end


def _in_order(names: list[str], elements: dict[str, XmlElement]) -> list[str]:
    """Sort annotations by their references to the previous one."""
    after = {elements[name].attributes.get('PREVIOUS_ANNOTATION'): name
             for name in names}
    order, name = [], after.get(None)
    while name is not None and name not in order:
        order.append(name)
        name = after.get(name)
    return order + [name for name in names if name not in order]


def write(annotations: Annotations, path: Path) -> None:
    """Write a tier for each class, or more if its segments overlap.

    An unknown end is a time slot without a time.
    """
    (video, _), = annotations.videos.items()
    segments = annotations.segments
    root = ElementTree.Element('ANNOTATION_DOCUMENT', {
        'AUTHOR': '', 'DATE': datetime.now().astimezone().isoformat(
            timespec='seconds'), 'FORMAT': '3.0', 'VERSION': '3.0',
        'xmlns:xsi': 'http://www.w3.org/2001/XMLSchema-instance',
        'xsi:noNamespaceSchemaLocation': SCHEMA})
    header = add(root, 'HEADER', MEDIA_FILE='', TIME_UNITS='milliseconds')
    add(header, 'MEDIA_DESCRIPTOR', MEDIA_URL=_url(video),
        MIME_TYPE='video/mp4' if video.lower().endswith('.mp4') else 'video/*',
        RELATIVE_MEDIA_URL=_url(video))
    order = add(root, 'TIME_ORDER')
    tiers: dict[str, list[VideoSegment]] = {}
    for label in labels_of(segments):
        of_label = [one for one in segments if label_of(one) == label]
        for i, lane in enumerate(lanes(of_label), 1):
            name = label if i == 1 else f'{label} ({i})'
            while name in tiers:
                name += "'"
            tiers[name] = lane
    number = 0
    for name, lane in tiers.items():
        tier = add(root, 'TIER', LINGUISTIC_TYPE_REF='default-lt',
                   TIER_ID=name)
        for one in lane:
            number += 1
            start = round(one.start * 1000)
            add(order, 'TIME_SLOT', TIME_SLOT_ID=f'ts{2 * number - 1}',
                TIME_VALUE=start)
            slot = add(order, 'TIME_SLOT', TIME_SLOT_ID=f'ts{2 * number}')
            if not is_open(one):
                slot.set('TIME_VALUE', str(max(
                    start + 1, round(one.end * 1000))))
            entry = add(
                add(tier, 'ANNOTATION'), 'ALIGNABLE_ANNOTATION',
                ANNOTATION_ID=f'a{number}',
                TIME_SLOT_REF1=f'ts{2 * number - 1}',
                TIME_SLOT_REF2=f'ts{2 * number}')
            add(entry, 'ANNOTATION_VALUE', label_of(one))
    add(header, 'PROPERTY', number, NAME='lastUsedAnnotationId')
    add(root, 'LINGUISTIC_TYPE', GRAPHIC_REFERENCES='false',
        LINGUISTIC_TYPE_ID='default-lt', TIME_ALIGNABLE='true')
    write_atomically(path, format_xml(root))


def _url(video: str) -> str:
    if '://' in video:
        return video
    # Only the percent sign has a meaning in the address.
    path = video.replace('%', '%25')
    return f'file://{path}' if path.startswith('/') else f'./{path}'
