# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import ast
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

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
        'online', 'ops', 'recognizers', 'registry', 'sources', 'utils',
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
UNRESTRICTED = 'commands', '__init__', '__main__', 'registry'
ALWAYS = {'lazy', 'version'}


@cache
def imports_of(path: Path) -> set[str]:
    """Return the absolute names of all imports of a file, also in functions.
    """
    here = path.relative_to(PACKAGE.parent).parent.parts
    names = set()
    for node in ast.walk(ast.parse(path.read_text('utf-8'))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = here[:len(here) + 1 - node.level] if node.level else ()
            module = '.'.join(filter(None, (*parent, node.module)))
            names.update(f'{module}.{alias.name}' for alias in node.names)
    return names


def modules() -> dict[str, Path]:
    """Return the files of the package by the name of their module."""
    return {'.'.join(path.relative_to(PACKAGE.parent).with_suffix('').parts
                     ).removesuffix('.__init__'): path
            for path in PACKAGE.rglob('*.py') if '.mim' not in path.parts}


def test_package_has_no_import_cycle():
    """Also none by imports in functions."""
    files, graph = modules(), {}
    for module, path in files.items():
        # An import may name a module or something in a module.
        graph[module] = {
            name if name in files else name.rpartition('.')[0]
            for name in imports_of(path)} & files.keys() - {module}
    assert len(graph) > 200 and any(graph.values())
    TopologicalSorter(graph).prepare()


def test_imports_point_down():
    broken = []
    for module, path in modules().items():
        part = (*module.split('.'), '__init__')[1]
        for name in imports_of(path):
            top, _, rest = name.partition('.')
            if top in ('tools', 'tests', 'configs') or (
                    top == PACKAGE.name and part not in UNRESTRICTED
                    and rest.partition('.')[0] not in
                    MAY_IMPORT[part] | ALWAYS | {part}) or (
                        # msgpack reads flax checkpoints.
                        part in ONLY_TORCH and top not in (
                            PACKAGE.name, 'torch', 'msgpack',
                            *sys.stdlib_module_names)):
                broken.append(f'{module} imports {name}')
    assert not broken


def test_first_use_of_an_op_is_not_its_module():
    subprocess.run([sys.executable, '-c', 'from mmvidattn import ops\n'
                    'assert callable(ops.linear_attention)'], check=True)
