# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import ast
import logging
import sys
from pathlib import Path

import pytest

from mmvidattn.utils.printable import PrintableFilter, echo, printable

PACKAGE = Path(__file__).resolve().parents[2] / 'mmvidattn'


@pytest.mark.parametrize('text, expected', [
    ('tänzen 跳 🎬', 'tänzen 跳 🎬'),
    ('red \x1b[31m', r'red \x1b[31m'),
    ('a\nb\tc\rd', r'a\nb\tc\rd'),
    ('\x00\x7f\x9b\u2028\u202e\udcff', r'\x00\x7f\x9b\u2028\u202e\udcff'),
    ('\U000e0001', r'\U000e0001'),
    (r'\x1b', r'\x1b'),
    ('', '')])
def test_escapes_unprintable_characters(text, expected):
    assert printable(text) == expected
    assert printable(expected) == expected
    assert expected.isprintable()


def test_output_is_printable_for_all_characters():
    text = ''.join(map(chr, range(sys.maxunicode + 1)))
    assert printable(text).isprintable()
    assert printable(text, keep='\n\t').replace('\n', '').replace(
        '\t', '').isprintable()


def test_echo_escapes(capsys):
    echo('a\x1b[2J', 3, Path('b\x9b'), sep='\n')
    echo('c\td', file=sys.stderr)
    assert capsys.readouterr() == ('a\\x1b[2J\n3\nb\\x9b\n', 'c\td\n')


def test_log_escapes(caplog):
    logger = logging.getLogger('test_printable')
    logger.addFilter(PrintableFilter())
    logger.warning('skipped %s:\n%d %%', 'a\x1b]0;x\x07.mp4', 3)
    assert caplog.messages == ['skipped a\\x1b]0;x\\x07.mp4:\n3 %']


def test_commands_print_with_echo():
    """Commands in `plain` print only their own text."""
    plain = {'__init__', 'doctor'}
    for path in PACKAGE.glob('commands/*.py'):
        calls = [node for node in ast.walk(ast.parse(path.read_text('utf-8')))
                 if isinstance(node, ast.Call)
                 and isinstance(node.func, ast.Name)
                 and node.func.id == 'print']
        assert path.stem in plain or not calls, path
