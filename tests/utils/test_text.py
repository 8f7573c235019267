# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Lines of files, and text that is safe in a terminal."""
import logging
import re
import sys
from pathlib import Path

import pytest

import mmvidattn
from mmvidattn.utils.printable import PrintableFilter, echo, printable
from mmvidattn.utils.text_files import read_lines

PACKAGE = Path(mmvidattn.__file__).parent


@pytest.mark.parametrize('text, lines', [
    ('', []), ('\n', ['']), ('a', ['a']),
    ('a\r\nb\rc\n\nd\n', ['a', 'b', 'c', '', 'd']),
    # str.splitlines splits at these characters.
    ('a\x0b\x0c\x1c\x85\u2028b\nc', ['a\x0b\x0c\x1c\x85\u2028b', 'c'])])
def test_lines_end_like_in_an_editor(tmp_path, text, lines):
    for bom in '', '\ufeff':
        (tmp_path / 'lines.txt').write_bytes((bom + text).encode())
        assert read_lines(tmp_path / 'lines.txt') == lines


@pytest.mark.parametrize('text, expected', [
    ('tänzen 跳 🎬', 'tänzen 跳 🎬'),
    ('red \x1b[31m', r'red \x1b[31m'),
    ('a\nb\tc\rd', r'a\nb\tc\rd'),
    ('\x00\x7f\x9b\u2028\u202e\udcff', r'\x00\x7f\x9b\u2028\u202e\udcff'),
    (r'\x1b', r'\x1b')])
def test_escapes_unprintable_characters(text, expected):
    assert printable(text) == printable(expected) == expected


def test_echo_and_log_escape(capsys, caplog):
    echo('a\x1b[2J', 3, Path('b\x9b'), sep='\n')
    echo('c\td\r', file=sys.stderr)
    assert capsys.readouterr() == ('a\\x1b[2J\n3\nb\\x9b\n', 'c\td\\r\n')
    logger = logging.getLogger('test_text')
    logger.addFilter(PrintableFilter())
    logger.warning('skipped %s:\n%d %%', 'a\x1b]0;x\x07.mp4', 3)
    assert caplog.messages == ['skipped a\\x1b]0;x\\x07.mp4:\n3 %']


def test_package_reads_and_prints_with_these_functions():
    """``doctor`` and ``--help`` print only their own text."""
    for path in PACKAGE.rglob('*.py'):
        text = path.read_text('utf-8')
        assert not re.search(r'read\w*\(.*\)\.splitlines', text), path
        if path.parent.name == 'commands' and path.stem not in (
                '__init__', 'doctor'):
            assert not re.search(r'(?<!\w)print[(),]', text), path
