# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import ast
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / 'mmvidattn'

# What each sub-package may import of ours; every one may import compat,
# version and itself.
MAY_IMPORT = {
    'ops': set(),
    'convert': set(),
    'utils': {'convert', 'ops'},
    'layers': {'ops', 'utils'},
    'backbones': {'ops', 'layers', 'utils'},
    'heads': {'ops', 'layers', 'utils'},
    'losses': {'ops', 'utils'},
    'online': {'ops', 'layers', 'utils'},
    'datasets': {'utils'},
    'evaluation': {'datasets', 'utils'},
    'engine': {'datasets', 'utils'},
    'visualization': {'utils'},
    'recognizers': {
        'ops', 'layers', 'backbones', 'heads', 'losses', 'online', 'utils'
    },
    'export': {'apis', 'online', 'ops', 'recognizers', 'utils'},
    'live': {'apis', 'datasets', 'online', 'utils', 'visualization'},
}
ONLY_TORCH = 'ops', 'convert'
ANYTHING_OF_OURS = 'apis', 'cli', '__init__'
ALWAYS = {'compat', 'version'}


def imports_of(path: Path, package: Path = PACKAGE) -> set[str]:
    """Absolute names of all modules a file imports, lazily or not."""
    here = path.relative_to(package.parent).with_suffix('').parts
    names = set()
    for node in ast.walk(ast.parse(path.read_text('utf-8'))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = '.'.join(here[:-node.level]) if node.level else ''
            module = '.'.join(filter(None, (parent, node.module)))
            names.update(f'{module}.{alias.name}' for alias in node.names)
    return names


def part_of(path: Path, package: Path = PACKAGE) -> str:
    return path.relative_to(package).with_suffix('').parts[0]


def broken_rules(package: Path) -> list[str]:
    broken = []
    for path in sorted(package.rglob('*.py')):
        if '.mim' in path.parts:
            continue
        part = part_of(path, package)
        for name in sorted(imports_of(path, package)):
            top, _, rest = name.partition('.')
            where = f'{path.relative_to(package)} imports {name}'
            if top in ('tools', 'tests', 'configs'):
                broken.append(where)
            elif top == package.name:
                other = rest.partition('.')[0]
                allowed = MAY_IMPORT.get(part, set()) | ALWAYS | {part}
                if part not in ANYTHING_OF_OURS and other not in allowed:
                    broken.append(where)
            elif part in ONLY_TORCH and top not in (
                    'torch', 'triton', *sys.stdlib_module_names):
                broken.append(where)
    return broken


def test_imports_point_down():
    assert broken_rules(PACKAGE) == []


def test_every_part_has_a_place():
    parts = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    assert parts - {'.mim', '__pycache__', 'apis', 'cli'} <= set(MAY_IMPORT)


@pytest.mark.parametrize('file, line, found', [
    ('ops/a.py', 'from ..layers import b', 1),
    ('ops/a.py', 'import mmengine', 1),
    ('ops/a.py', 'from . import b\nimport math, torch', 0),
    ('ops/deep/a.py', 'from ...layers.b import c', 1),
    ('ops/deep/a.py', 'from ..b import c', 0),
    ('convert/a.py', 'def f():\n    import numpy', 1),
    ('layers/a.py', 'from ..backbones.b import c', 1),
    ('layers/a.py', 'from mmvidattn.ops import c', 0),
    ('backbones/__init__.py', 'from mmvidattn import heads', 1),
    ('heads/a.py', 'import mmvidattn.recognizers', 1),
    ('recognizers/a.py', 'from ..online import b', 0),
    ('recognizers/a.py', 'from ..apis import b', 1),
    ('apis/a.py', 'from tools import train', 1),
    ('compat.py', 'from . import layers', 1),
    ('__init__.py', 'from . import layers, compat', 0),
])
def test_upward_import_is_found(tmp_path, file, line, found):
    path = tmp_path / 'mmvidattn' / file
    path.parent.mkdir(parents=True)
    path.write_text(line)
    assert len(broken_rules(tmp_path / 'mmvidattn')) == found
