# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pickle

import pytest

from mmvidattn.datasets import read_video_list


@pytest.fixture
def read(tmp_path):
    path = tmp_path / 'list.txt'

    def read(data, **options):
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return read_video_list(str(path), **options)

    return read


WANTED = [('a.mp4', 1), ('ü ñ/with two spaces 视频.mp4', 0)]


@pytest.mark.parametrize('change', [
    lambda text: text, lambda text: text.replace('\n', '\r\n'),
    lambda text: text.replace('\n', '\r'), lambda text: '\ufeff' + text,
    lambda text: '\n \n' + text + '\n\n',
    lambda text: text[:-1],
    lambda text: text.replace('\n', ' \t\n')],
    ids=['plain', 'CRLF', 'CR', 'BOM', 'blank lines', 'no last line end',
         'blanks at line ends'])
def test_reads_every_form_of_text(read, change):
    assert read(change('a.mp4 1\nü ñ/with two spaces 视频.mp4 0\n')) == WANTED


def test_odd_separators_of_unicode_end_no_line(read):
    assert read('a\u2028b\x0bc.mp4 1\n') == [('a\u2028b\x0bc.mp4', 1)]


@pytest.mark.parametrize('text, said, options', [
    ('a 0\n\nb', "line 3: 'b': no label; expected '<path> <label>'", {}),
    ('a 0\nb x', "line 2: 'b x': label 'x' is not an integer", {}),
    ('a 0\nb 2\nc 3', 'line 2: .*out of range, with 2 classes.*Also wrong: '
     'lines 3$', dict(num_classes=2)),
    ('a -1', 'line 1: .*label -1 is negative', {}),
    ('a 0\n 3', "line 2: ' 3': no label", {}),
    ('a 0\nb 1\na 1', "line 3: 'a 1': line 1 gives it the label 0", {}),
    ('\n'.join(['x'] * 12), 'Also wrong: lines 2, 3, .*9, ...$', {}),
    ('', 'lists no videos', {}), ('\n \n', 'lists no videos', {}),
    (b'a 0\n\xff\xfe 1', 'line 2: not text in UTF-8 .byte 0xff', {}),
    ('a 0\nb\0 1', 'line 2: a zero byte', {}),
    ('a 0\nb 1'.encode('utf-16'), 'line 1: not text in UTF-8', {}),
    (pickle.dumps(['a']), 'not text in UTF-8', {}),
    ('a,0\nb 1', 'line 2.*no label', dict(delimiter=',')),
    ('a 1 0\nb', "line 2.*<path> <label> <label>...", dict(
        multi_class=True)),
], ids=repr)
def test_each_fault_is_named_with_its_line(read, text, said, options):
    with pytest.raises(ValueError, match=f'(?s)list.txt.*{said}'):
        read(text, **options)


def test_repeated_video_is_kept_with_a_warning(read, logged):
    assert len(read('a 0\nb 1\n\na 0\nb 1\n')) == 4
    line, = [line for line in logged if 'more than once' in line]
    assert '2 videos' in line and 'a in lines 1, 4' in line
    # A video may well have two labels where it may have many.
    assert len(read('a 0\na 1', multi_class=True)) == 2
