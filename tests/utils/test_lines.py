# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import ast
import unicodedata
from pathlib import Path

import pytest

import mmvidattn
from mmvidattn.utils.lines import read_lines, split_lines

PACKAGE = Path(mmvidattn.__file__).parent
# All characters at which str.splitlines splits.
BREAKS = [chr(i) for i in range(0x110000) if len(f'a{chr(i)}b'.splitlines())
          == 2]


@pytest.mark.parametrize('text, lines', [
    ('', []), ('\n', ['']), ('a', ['a']), ('a\n', ['a']),
    ('a\r\nb\rc\n\nd', ['a', 'b', 'c', '', 'd'])])
@pytest.mark.parametrize('bom', ['', '\ufeff'], ids=['plain', 'bom'])
def test_splits_at_each_kind_of_line_end(tmp_path, text, lines, bom):
    assert split_lines(text) == lines
    path = tmp_path / 'lines.txt'
    path.write_bytes((bom + text).encode())
    assert read_lines(path) == lines


@pytest.mark.parametrize(
    'char', [x for x in BREAKS if x not in '\r\n'],
    ids=lambda x: unicodedata.name(x, f'U+{ord(x):04X}'))
def test_keeps_other_line_breaks_of_unicode(char):
    assert split_lines(f'a{char}b\nc') == [f'a{char}b', 'c']


def test_package_uses_this_function_for_files():
    """``splitlines`` is only allowed for text that is not from a file."""
    result = set()
    for path in PACKAGE.rglob('*.py'):
        for node in ast.walk(ast.parse(path.read_text('utf-8'))):
            if isinstance(node, ast.Attribute) and node.attr == 'splitlines' \
                    and 'read' in ast.unparse(node.value):
                result.add(path.relative_to(PACKAGE).as_posix())
    # /proc/cpuinfo is ASCII.
    assert result == {'utils/half_precision.py'}
