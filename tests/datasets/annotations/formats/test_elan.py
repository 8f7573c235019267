# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""ELAN's files; pympi is another implementation of the format."""
import math

import pytest

from mmvidattn.datasets.annotations.formats import (
    read_annotations,
    write_annotations,
)
from mmvidattn.datasets.annotations.video_segment import VideoSegment

HEAD = '''<?xml version="1.0" encoding="UTF-8"?>
<ANNOTATION_DOCUMENT AUTHOR="" DATE="" FORMAT="3.0" VERSION="3.0">
<HEADER MEDIA_FILE="" TIME_UNITS="milliseconds">{media}</HEADER>
<TIME_ORDER>
'''
MEDIA = ('<MEDIA_DESCRIPTOR MEDIA_URL="file:///C:/v/day%201.mp4" '
         'MIME_TYPE="video/mp4"/>')


def document(slots, *tiers, media=MEDIA):
    """Return a file; slots are times or None, and tiers are XML."""
    lines = [f'<TIME_SLOT TIME_SLOT_ID="ts{i}"' + (
        '' if time is None else f' TIME_VALUE="{time}"') + '/>'
        for i, time in enumerate(slots)]
    return '\n'.join([HEAD.format(media=media) + '\n'.join(lines),
                      '</TIME_ORDER>', *tiers, '</ANNOTATION_DOCUMENT>'])


def tier(name, *entries):
    return (f'<TIER TIER_ID="{name}" LINGUISTIC_TYPE_REF="x">'
            + ''.join(f'<ANNOTATION>{one}</ANNOTATION>' for one in entries)
            + '</TIER>')


def aligned(name, first, last, text='x'):
    return (f'<ALIGNABLE_ANNOTATION ANNOTATION_ID="{name}" TIME_SLOT_REF1='
            f'"ts{first}" TIME_SLOT_REF2="ts{last}"><ANNOTATION_VALUE>{text}'
            '</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION>')


def reference(name, parent, text, previous=None):
    more = '' if previous is None else f' PREVIOUS_ANNOTATION="{previous}"'
    return (f'<REF_ANNOTATION ANNOTATION_ID="{name}" ANNOTATION_REF="{parent}"'
            f'{more}><ANNOTATION_VALUE>{text}</ANNOTATION_VALUE>'
            '</REF_ANNOTATION>')


def times(found):
    return [(one.labels['action'], one.start, one.end)
            for one in found.segments]


def test_reads_what_pympi_writes(tmp_path):
    elan = pytest.importorskip('pympi').Elan
    eaf = elan.Eaf()
    eaf.add_linked_file('file:///home/me/day 1.mp4', './day 1.mp4',
                        'video/mp4')
    eaf.add_linguistic_type('detail', constraints='Symbolic_Association',
                            timealignable=False)
    for name in 'run', 'open & close':
        eaf.add_tier(name)
    eaf.add_tier('comment', ling='detail', parent='run')
    wanted = []
    for i in range(40):
        name = ('run', 'open & close')[i % 2]
        first, last = 500 * i, 500 * i + 777
        value = '' if i % 3 == 0 else f'Wert {i} é <b>'
        eaf.add_annotation(name, first, last, value)
        wanted.append((value or name, first / 1000, last / 1000))
    eaf.add_ref_annotation('comment', 'run', 100, 'loud')
    wanted.append(('loud', 0., 0.777))
    eaf.to_file(str(tmp_path / 'a.eaf'))
    found = read_annotations(tmp_path / 'a.eaf')
    assert sorted(times(found)) == sorted(wanted)
    assert [*found.videos] == ['day 1.mp4']


def test_pympi_reads_what_we_write(tmp_path):
    elan = pytest.importorskip('pympi').Elan
    spans = [('run', 0, 1500), ('run', 1000, 2000), ('run', 2000, 2001),
             ('run', 1250, 1750), ('a & "b"', 5, 99_999)]
    # The nearest millisecond is written.
    write_annotations([
        VideoSegment(str(i), 'v/a.mp4', max(0, first - .4) / 1000,
                     (last + (-.4, .4)[i % 2]) / 1000, dict(action=label), '')
        for i, (label, first, last) in enumerate(spans)], tmp_path / 'a.eaf')
    eaf = elan.Eaf(str(tmp_path / 'a.eaf'))
    assert sorted(eaf.get_tier_names()) == ['a & "b"', 'run', 'run (2)',
                                            'run (3)']
    tiers = [sorted(eaf.get_annotation_data_for_tier(name))
             for name in eaf.get_tier_names()]
    assert sorted((value, first, last) for tier in tiers
                  for first, last, value in tier) == sorted(spans)
    # No overlap within a tier.
    assert all(a[1] <= b[0] for tier in tiers for a, b in zip(tier, tier[1:]))
    assert eaf.get_linked_files()[0]['RELATIVE_MEDIA_URL'] == './v/a.mp4'


OFFSET = (MEDIA.replace('MIME', 'TIME_ORIGIN="1500" MIME')
          + MEDIA.replace('day', 'other'))


@pytest.mark.parametrize('text, wanted, remarks', [
    (document([1000, None, None, 4000, 5000, None],
              tier('a', aligned('a1', 0, 1, 'p'), aligned('a2', 1, 2, 'q'),
                   aligned('a3', 2, 3, 'r'), aligned('a4', 4, 5, 'open'))),
     [('p', 1, 2), ('q', 2, 3), ('r', 3, 4), ('open', 5, math.nan)], []),
    # Steps share the first and last slot of their phrase. A slot of another
    # tier is between their own.
    (document([1000, None, 1500, None, 4000],
              tier('phrase', aligned('a1', 0, 4, 'cook')),
              tier('steps', aligned('a2', 0, 1, 'cut'),
                   aligned('a3', 1, 3, 'mix'), aligned('a4', 3, 4, 'fry')),
              tier('other', aligned('a5', 2, 4, 'talk'))),
     [('cook', 1, 4), ('cut', 1, 2), ('mix', 2, 3), ('fry', 3, 4),
      ('talk', 1.5, 4)], []),
    (document([0, 3000], tier('c', reference('a5', 'a3', 'half')),
              tier('b', reference('a4', 'a1', 'third', 'a3'),
                   reference('a2', 'a1', 'first'),
                   reference('a3', 'a1', 'second', 'a2')),
              tier('a', aligned('a1', 0, 1, 'all'))),
     [('half', 1, 2), ('third', 2, 3), ('first', 0, 1), ('second', 1, 2),
      ('all', 0, 3)], []),
    (document([0, 1000], tier('a', aligned('a1', 0, 1)), media=OFFSET),
     [('x', 1.5, 2.5)], ['1 further media files left out']),
    (document([None, 1000, 2000], tier('a', aligned('a1', 0, 1, 'p'),
                                       aligned('a2', 1, 2, 'q'))),
     [('q', 1, 2)], ['1 annotation without a start left out'])],
    ids=['missing times', 'in each tier', 'references', 'offset', 'no start'])
def test_times_of_annotations(tmp_path, text, wanted, remarks):
    path = tmp_path / 'a.eaf'
    path.write_text(text)
    found = read_annotations(path)
    assert [*found.videos] == ['/C:/v/day 1.mp4']
    # As text, because nan is not equal to itself.
    assert str(times(found)) == str(
        [(label, float(start), float(end)) for label, start, end in wanted])
    assert found.remarks == remarks


def test_reads_only_the_named_tiers(tmp_path):
    path = tmp_path / 'a.eaf'
    path.write_text(document([0, 1000], tier('a', aligned('a1', 0, 1, 'p')),
                             tier('b', reference('a2', 'a1', 'q'))))
    assert times(read_annotations(path, tiers=['b'])) == [('q', 0, 1)]
    with pytest.raises(ValueError, match="no tier 'c', only 'a', 'b'"):
        read_annotations(path, tiers=['c'])


@pytest.mark.parametrize('text, error', [
    (document([0], tier('a', aligned('a1', 0, 7))), 'a1 has no time slot ts7'),
    (document([0, 1], tier('a', aligned('a1', 0, 1)),
              tier('b', aligned('a1', 0, 1))),
     'two annotations have the id a1'),
    (document([5, 1], tier('a', aligned('a1', 0, 1))),
     'annotation a1 of tier a: a segment must have 0 <= start < end, got 0'),
    (document([0], tier('a', reference('a1', 'a9', 'x'))), 'no parent a9'),
    (document([0], tier('a', reference('a1', 'a2', 'x'),
                        reference('a2', 'a1', 'x'))),
     'the annotation a1 refers to itself'),
    (document(['x'], tier('a')), "TIME_VALUE must be a number, got 'x'"),
    (document([0, 1], tier('a', aligned('a1', 0, 1)))[:-30],
     'invalid XML: .* line'),
    (document([0], '<TIER/>'), 'TIER  needs the attribute TIER_ID'),
    ('<!DOCTYPE a [<!ENTITY b "c">]>\n<ANNOTATION_DOCUMENT/>',
     'a document type .* is not allowed')])
def test_broken_file_names_the_annotation(tmp_path, text, error):
    path = tmp_path / 'a.eaf'
    path.write_text(text)
    with pytest.raises(ValueError, match=error):
        read_annotations(path, 'elan')
