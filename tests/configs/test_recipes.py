# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Tables of recipes, and the model zoo of the metafiles."""
import re
import shutil
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml
from config_cache import load_config

from docs import recipes
from mmvidattn.apis import list_models

ROOT = Path(__file__).resolve().parents[2]
FAMILIES = {'dualformer', 'laps', 'linear_ff', 'mat', 'miniroad', 'testra',
            'vivit', 'vjepa2', 'xvit'}
# Configs with another recipe or shift for the model of a row.
VARIANTS = '*released*', '*_paper_*', '*_v1_*'


@pytest.fixture
def checkout(tmp_path):
    """Copy the smallest family to a folder, for the test to change."""
    configs = ROOT / 'configs'
    shutil.copytree(configs / '_base_', tmp_path / 'configs/_base_')
    shutil.copytree(configs / 'miniroad', tmp_path / 'configs/miniroad')
    for path in configs.glob('miniroad_*.py'):
        shutil.copy(path, tmp_path / 'configs')
    return tmp_path


def test_pages_and_index_of_this_checkout_are_current(monkeypatch):
    monkeypatch.setattr(recipes, 'load_config',
                        lambda path: load_config(path.stem))
    files = recipes.make_files()
    assert {path.parent.name for path in files} == {*FAMILIES, ROOT.name}
    for path, text in files.items():
        assert path.read_text('utf-8') == text, 'run python docs/recipes.py'


@pytest.mark.parametrize('path, old, new, message', [
    ('miniroad/recipes.yml', 'config: miniroad_thumos14', 'config: miniroad',
     'recipes.yml: config must be one of miniroad_thumos14, miniroad_tvseries,'
     ' got miniroad'),
    ('miniroad/recipes.yml', 'epochs', 'epoch', 'got epoch'),
    ('miniroad/recipes.yml', "'*'", 'b_*', 'no pattern of "start" matches'),
    ('miniroad/recipes.yml', 'authors:', 'authors: {', 'is not valid YAML'),
    ('miniroad_tvseries.py', 'base_batch_size=64', 'base_batch_size=30',
     'must be a multiple of the batch size 64, got 30')])
def test_reports_the_fault(checkout, path, old, new, message):
    changed = checkout / 'configs' / path
    assert old in changed.read_text()
    changed.write_text(changed.read_text().replace(old, new))
    with pytest.raises(ValueError, match=re.escape(message)):
        recipes.make_files(checkout)


def test_index_has_all_families_and_configs():
    index = yaml.safe_load((ROOT / 'model-index.yml').read_text())
    assert {*index['Import']} == {
        f'configs/{family}/metafile.yml' for family in FAMILIES}
    rows = {model['Name'] for path in index['Import'] for model in
            yaml.safe_load((ROOT / path).read_text())['Models']}
    others = *recipes.MINIATURES, *VARIANTS
    missing = {name for name in list_models() if name not in rows
               and not any(fnmatch(name, other) for other in others)}
    assert not missing


@pytest.mark.parametrize('family', sorted(FAMILIES))
def test_metafiles_match_configs_and_pages(family):
    page = (ROOT / f'configs/{family}/README.md').read_text()
    lines = {row[1]: row[0] for row in re.finditer(
        r'^\| `(\w+)\.py` \|.*', page, re.M)}
    content = yaml.safe_load(
        (ROOT / f'configs/{family}/metafile.yml').read_text())
    collections = {one['Name'] for one in content['Collections']}
    for model in content['Models']:
        assert model['Config'] == f'configs/{model["Name"]}.py'
        assert (ROOT / model['Config']).is_file()
        assert model['In Collection'] in collections
        # Figures of the table, without thousands separators.
        cells = lines.pop(model['Name']).replace(',', '').split('|')
        figures = {float(figure) for cell in cells
                   for figure in re.findall(r'\d+(?:\.\d+)?', cell)}
        metadata = model['Metadata']
        params = metadata['Parameters']
        assert figures & {params, round(params / 1e6, 2)}, model['Name']
        if 'FLOPs' in metadata:
            assert round(metadata['FLOPs'] / 1e9, 2) in figures
        cfg = load_config(model['Name'])
        assert metadata['Epochs'] == cfg.train_cfg.max_epochs
        batch = cfg.auto_scale_lr.base_batch_size
        assert metadata.get('Batch Size', batch) == batch, model['Name']
        for result in model.get('Results', ()):
            assert set(result['Metrics'].values()) <= figures, model['Name']
    others = *recipes.MINIATURES, *VARIANTS
    assert not [name for name in lines
                if not any(fnmatch(name, other) for other in others)]
