# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Each command of the page of reliability selects tests."""
import re
import shlex
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_commands_name_tests():
    page = (ROOT / 'docs/reliability.md').read_text()
    commands = re.findall(r'`(python -m pytest .*?)`', page)
    assert len(commands) >= 10
    for command in commands:
        words = shlex.split(command)
        files = [word for word in words if word.startswith('tests/')]
        tests = re.findall(r'^def (test_\w+)', '\n'.join(
            (ROOT / file).read_text() for file in files), re.M)
        if '-k' in words:
            for part in words[words.index('-k') + 1].split(' or '):
                assert any(part in name for name in tests), (command, part)
