# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Configs change what they inherit by name, not by its place in a list."""
import ast
import re
import shutil
from pathlib import Path

import pytest
from mmengine.config import Config

FOLDER = Path(__file__).resolve().parents[2] / 'configs'
CONFIGS = sorted(path.relative_to(FOLDER) for path in FOLDER.rglob('*.py'))
NEW = dict(type='Inserted')


@pytest.mark.parametrize('path', CONFIGS, ids=str)
def test_no_config_counts_steps(path):
    for node in ast.walk(ast.parse((FOLDER / path).read_text())):
        if isinstance(node, ast.Subscript):
            assert not isinstance(node.slice, ast.Slice), ast.unparse(node)
            assert not re.fullmatch(r'-?\d+', ast.unparse(node.slice)), \
                ast.unparse(node)


@pytest.fixture(scope='module')
def inserted(tmp_path_factory):
    """The configs, with a step more at the head of every list of a base."""
    folder = tmp_path_factory.mktemp('inserted') / 'configs'
    shutil.copytree(FOLDER, folder)
    for path in (folder / '_base_').rglob('*.py'):
        path.write_text(re.sub(
            r'^(\w*pipeline|param_scheduler) = \[\n', rf'\g<0>    {NEW},\n',
            path.read_text(), flags=re.MULTILINE))
    return folder


def _without_new(value):
    if isinstance(value, dict):
        return {key: _without_new(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_new(item) for item in value if item != NEW]
    return value


@pytest.mark.parametrize('path', [
    path for path in CONFIGS if 'change(' in (FOLDER / path).read_text()],
    ids=str)
def test_changes_hold_where_a_step_is_inserted(inserted, path):
    cfg = Config.fromfile(FOLDER / path).to_dict()
    more = Config.fromfile(inserted / path).to_dict()
    assert str(NEW) in str(more)
    assert _without_new(more) == cfg


@pytest.mark.parametrize(
    'path', [path for path in CONFIGS if '_base_' not in path.parts], ids=str)
def test_pipelines_are_those_of_the_dataloaders(path):
    """Those of the dataloaders are run; the others are what is inherited."""
    cfg = Config.fromfile(FOLDER / path)
    for split in 'train', 'val', 'test':
        if f'{split}_pipeline' in cfg:
            assert cfg[f'{split}_pipeline'] == \
                cfg[f'{split}_dataloader'].dataset.pipeline
