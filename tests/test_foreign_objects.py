# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""engine and datasets use extension points, and modify no foreign object."""
import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / 'mmvidattn'
# Attributes that torch and mmengine expect to be set from outside. mmengine's
# loops have no other way to get a data loader that continues in an epoch.
PUBLIC = {'grad', 'momentum', 'daemon', 'seed', 'worker_init_fn',
          'dataloader', 'dataloader_iterator', 'indices'}
# Names of variables with objects of our classes.
OURS = {
    'self', 'self.batches', 'guard', 'wrapper', 'runner.optim_wrapper',
    'backbone', 'CheckedStep', 'output'}
# Files of this folder use no objects of torch and mmengine.
PLAIN = PACKAGE / 'datasets/annotations'


def foreign_changes(text: str) -> list[str]:
    """List assignments to attributes of objects of other packages."""
    results = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            targets = getattr(node, 'targets', None) or [node.target]
            results += [
                target for one in targets for target in ast.walk(one)
                if isinstance(target, ast.Attribute)
                and isinstance(target.ctx, ast.Store)
                and target.attr not in PUBLIC
                and ast.unparse(target.value) not in OURS]
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            first = ast.unparse(node.args[0]) if node.args else ''
            if called == 'setattr' and first != 'self' or (
                    called.startswith('vars(')
                    and not called.startswith('vars(self)')
                    and called.endswith(('.update', '.pop', '.setdefault'))):
                results.append(node)
    return [f'line {node.lineno}: {ast.unparse(node)}' for node in results]


@pytest.mark.parametrize('folder', ['engine', 'datasets'])
def test_sets_nothing_on_foreign_objects(folder):
    by_file = {
        str(path.relative_to(PACKAGE)): foreign_changes(path.read_text())
        for path in (PACKAGE / folder).rglob('*.py')
        if not path.is_relative_to(PLAIN)}
    assert len(by_file) > 10
    assert not {name: lines for name, lines in by_file.items() if lines}


def test_finds_foreign_changes():
    for line in ('vars(loader).update(dataset=d)', 'loop.run = telling',
                 'a, runner.train_loop.run_iter = 1, f',
                 'setattr(wrapper.inner, "step", f)'):
        assert len(foreign_changes(line)) == 1, line


def test_uses_no_private_iterators():
    for folder in 'engine', 'datasets':
        for path in (PACKAGE / folder).rglob('*.py'):
            text = path.read_text()
            assert '._iterator' not in text, path
            assert '_InfiniteDataloaderIterator' not in text, path
