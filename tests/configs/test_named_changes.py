# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Configs change inherited steps by name, not by their index in a list."""
import ast
import re
import shutil
from pathlib import Path

import pytest
from mmengine.config import Config

FOLDER = Path(__file__).resolve().parents[2] / 'configs'
CONFIGS = sorted(path.relative_to(FOLDER) for path in FOLDER.rglob('*.py'))
NEW = dict(type='Inserted')


def test_no_config_uses_a_list_index():
    for path in CONFIGS:
        for node in ast.walk(ast.parse((FOLDER / path).read_text())):
            if isinstance(node, ast.Subscript):
                result = ast.unparse(node.slice)
                assert ':' not in result, path
                assert not re.fullmatch(r'-?\d+', result), path


@pytest.fixture(scope='module')
def inserted(tmp_path_factory):
    """Copy the configs with an extra first step in every list of a base."""
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


def test_changes_still_apply_after_inserting_a_step(inserted):
    paths = [path for path in CONFIGS if 'ablations' not in path.parts
             and re.search(r'change\(|_pipeline=dict',
                           (FOLDER / path).read_text())]
    assert len(paths) > 30
    for path in paths:
        cfg = Config.fromfile(FOLDER / path).to_dict()
        more = Config.fromfile(inserted / path).to_dict()
        assert str(NEW) in str(more), path
        assert _without_new(more) == cfg, path
