# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Projects of the VGG Image Annotator 3 (VIA), with temporal segments.

https://gitlab.com/vgg/via/-/blob/master/via-3.x.y/src/js/_via_attribute.js
"""
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..video_segment import VideoSegment
from .base import (
    Annotations,
    FrameRate,
    by_video,
    is_open,
    is_point,
    label_of,
    labels_of,
)
from .json_file import JsonValue, read_json_values, write_json

# Anchor of attributes of temporal segments.
SEGMENT = 'FILE1_Z2_XY0'
TEXT, CHECKBOX, RADIO, SELECT = 1, 2, 3, 4
LOCAL, REMOTE = 1, 2
# Names of the attributes that we write.
LABEL, SCORE, END = 'label', 'score', 'end'
UNKNOWN = 'unknown'


def recognizes(start: str) -> bool:
    return start.startswith('{') and '"project"' in start and (
        '"vid_list"' in start or '"data_format_version"' in start)


def read(path: Path, frame_rate: FrameRate | None = None) -> Annotations:
    """Read the temporal segments of a project.

    Each attribute of a segment is a label, except attributes named ``score``
    and ``end``. A checkbox may have several. A segment with one time is a
    point event.
    """
    root = read_json_values(path)
    found = Annotations(format='via')
    attributes = dict(root['attribute'].items())
    files = dict(root['file'].items())
    views = {}
    for vid, view in root['view'].items():
        fids = list(view['fid_list'])
        if not fids:
            continue
        name = _video(files, fids[0])
        views[vid] = name
        found.add_video(name)
    spatial = unlabeled = 0
    for name, one in root['metadata'].items():
        times = one['z']
        if one.read('xy', len, 0) or not 1 <= len(times) <= 2:
            spatial += 1
            continue
        segments = list(_segments(name, one, views, attributes))
        unlabeled += not segments
        found.segments += segments
    found.count(spatial, 'regions and labels of entire files left out')
    found.count(unlabeled, 'segments without a label left out')
    return found


def _video(files: dict[str, JsonValue], fid: JsonValue) -> str:
    if fid.text() not in files:
        fid.fail(f'no file has the number {fid.text()}')
    file = files[fid.text()]
    location, source = file.get('loc'), file.get('src')
    if location is not None and location.integer() == REMOTE and (
            source is not None):
        return source.name()
    return file['fname'].name()


def _segments(name: str, one: JsonValue, views: dict[str, str],
              attributes: dict[str, JsonValue]) -> Iterator[VideoSegment]:
    """Yield a segment for each label of an entry of the metadata."""
    vid = one['vid']
    if vid.text() not in views:
        vid.fail(f'no view has the number {vid.text()}')
    times = [time.number() for time in one['z']]
    start, end = times[0], times[-1]
    labels, score = [], None
    for key, value in one['av'].items():
        if key not in attributes:
            value.fail(f'no attribute has the number {key}')
        attribute = attributes[key]
        title = attribute['aname'].text()
        text = value.text().strip()
        if not text:
            continue
        if title == SCORE:
            score = value.number()
        elif title == END and text == UNKNOWN:
            end = math.nan
        else:
            labels += _names(attribute, text)
    for label in labels:
        yield VideoSegment(name, views[vid.text()], start, end,
                           dict(action=label), one.where, score=score)


def _names(attribute: JsonValue, text: str) -> Iterator[str]:
    """Yield the names of the chosen options, or a free text."""
    kind = attribute['type'].integer()
    names = attribute.read('options', lambda found: dict(found.items()), {})
    for key in text.split(',') if kind == CHECKBOX else [text]:
        if kind != TEXT and key in names:
            yield names[key].name()
        elif key.strip():
            yield ' '.join(key.split())


def write(annotations: Annotations, path: Path) -> None:
    """Write a project with the attribute ``label``.

    The attributes ``score`` and ``end`` are added if any segment needs them.
    """
    segments = annotations.segments
    labels = labels_of(segments)
    numbers = {label: str(i) for i, label in enumerate(labels)}
    attributes = {'1': _attribute(LABEL, SELECT, {
        number: label for label, number in numbers.items()})}
    if any(one.score is not None for one in segments):
        attributes['2'] = _attribute(SCORE, TEXT, {})
    if any(map(is_open, segments)):
        attributes['3'] = _attribute(END, TEXT, {})
    groups = by_video(annotations)
    files, views, metadata = {}, {}, {}
    for vid, (video, group) in enumerate(groups.items(), 1):
        is_url = '://' in video
        files[str(vid)] = dict(
            fid=str(vid), fname=video, type=4, loc=REMOTE if is_url else LOCAL,
            src=video if is_url else '')
        views[str(vid)] = dict(fid_list=[str(vid)])
        for i, one in enumerate(group):
            has_end = not (is_point(one) or is_open(one))
            values = {'1': numbers[label_of(one)]}
            if one.score is not None:
                values['2'] = repr(one.score)
            if is_open(one):
                values['3'] = UNKNOWN
            metadata[f'{vid}_{i:08d}'] = dict(
                vid=str(vid), flg=0, z=[one.start] + [one.end] * has_end,
                xy=[], av=values)
    project = dict(
        pid='__VIA_PROJECT_ID__', rev='__VIA_PROJECT_REV_ID__',
        rev_timestamp='__VIA_PROJECT_REV_TIMESTAMP__', pname=path.stem,
        creator='mmvidattn', created=0, data_format_version='3.1.1',
        vid_list=[*views])
    config = dict(
        file=dict(loc_prefix={str(i): '' for i in range(1, 5)}),
        ui=dict(file_content_align='center',
                file_metadata_editor_visible=True,
                spatial_metadata_editor_visible=True,
                temporal_segment_metadata_editor_visible=True,
                spatial_region_label_attribute_id='',
                gtimeline_visible_row_count='4'))
    write_json(path, dict(
        project=project, config=config, attribute=attributes, file=files,
        view=views, metadata=metadata))


def _attribute(name: str, kind: int, options: dict[str, str]
               ) -> dict[str, Any]:
    return dict(aname=name, anchor_id=SEGMENT, type=kind, desc='',
                options=options, default_option_id='')
