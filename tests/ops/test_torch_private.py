# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / 'mmvidattn'
# Names of ATen operators are not private parts of torch's Python code.
PRIVATE = re.compile(
    r'\b(torch|forward_ad)(\.(?!ops)[a-z]\w*)*\._[A-Za-z]'
    r'|torch\.ops\.mkldnn\._|from torch[\w.]*\._|\._\w+_hooks\b')


def test_only_one_module_uses_private_parts_of_torch():
    results = [
        path.relative_to(PACKAGE).as_posix()
        for path in sorted(PACKAGE.rglob('*.py'))
        if '.mim' not in path.parts and PRIVATE.search(path.read_text())]
    assert [name for name in results if not name.startswith('compat')] == [
        'ops/torch_private.py']
