# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import ast
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / 'mmvidattn'

# Folders that each folder may import, in addition to version and itself.
MAY_IMPORT = {
    # Workarounds for pipeline steps use our video readers.
    'compat': {'utils'},
    'ops': set(),
    'convert': set(),
    'utils': {'ops'},
    'layers': {'ops', 'utils'},
    'backbones': {'convert', 'ops', 'layers', 'utils'},
    'heads': {'ops', 'layers', 'utils'},
    'losses': {'ops', 'utils'},
    'online': {'ops', 'layers', 'utils'},
    'datasets': {'utils'},
    'evaluation': {'datasets', 'online', 'utils'},
    'engine': {'datasets', 'ops', 'utils'},
    'visualization': {'utils'},
    'recognizers': {
        'ops', 'layers', 'backbones', 'heads', 'losses', 'online', 'utils'
    },
    'sources': {'datasets', 'utils'},
    'apis': {
        'backbones', 'compat', 'convert', 'datasets', 'engine', 'layers',
        'online', 'ops', 'recognizers', 'registered', 'sources', 'utils',
        'visualization'
    },
    'export': {'apis', 'online', 'ops', 'recognizers', 'utils'},
    'live': {
        'apis', 'datasets', 'online', 'sources', 'utils', 'visualization'
    },
    'finetune': {
        'apis', 'datasets', 'engine', 'evaluation', 'layers', 'live', 'online',
        'utils', 'visualization'
    },
}
ONLY_TORCH = 'ops', 'convert'
UNRESTRICTED = 'commands', '__init__', '__main__', 'registered'
ALWAYS = {'lazy', 'version'}


@cache
def imports_of(path: Path, package: Path = PACKAGE) -> set[str]:
    """Return the absolute names of all imports of a file, also in functions.
    """
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
                if part not in UNRESTRICTED and other not in allowed:
                    broken.append(where)
            # msgpack reads flax checkpoints.
            elif part in ONLY_TORCH and top not in (
                    'torch', 'msgpack', *sys.stdlib_module_names):
                broken.append(where)
    return broken


def find_cycle(package: Path) -> list[str]:
    """Find modules of a package that import each other, also in functions.

    Returns:
        Modules of a cycle, each imported by the next one.
    """
    files = {}
    for path in package.rglob('*.py'):
        parts = path.relative_to(package.parent).with_suffix('').parts
        if '.mim' not in parts:
            files['.'.join(parts).removesuffix('.__init__')] = path
    graph = {}
    for module, path in files.items():
        graph[module] = set()
        for name in imports_of(path, package):
            # The import may name a module or something in a module.
            if name not in files:
                name = name.rpartition('.')[0]
            if name in files and name != module:
                graph[module].add(name)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_package_has_no_import_cycle():
    assert find_cycle(PACKAGE) == []


def test_imports_point_down():
    assert broken_rules(PACKAGE) == []


def test_all_folders_have_rules():
    parts = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    others = {'.mim', '__pycache__', 'weights', *UNRESTRICTED}
    assert parts - others <= set(MAY_IMPORT)


@pytest.mark.parametrize('file, line', [
    ('ops/a.py', 'import mmengine'),
    ('ops/deep/a.py', 'from ...layers import b'),
    ('layers/a.py', 'def f():\n    from ..backbones.b import c'),
    ('backbones/__init__.py', 'from mmvidattn import heads'),
    ('apis/a.py', 'from tools import train')])
def test_finds_upward_import(tmp_path, file, line):
    path = tmp_path / 'mmvidattn' / file
    path.parent.mkdir(parents=True)
    path.write_text(line)
    assert len(broken_rules(tmp_path / 'mmvidattn')) == 1
