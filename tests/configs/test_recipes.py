# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Tables of recipes, and the model zoo of the metafiles."""
import re
from fnmatch import fnmatch

import pytest
import yaml
from helpers import ROOT

from docs import recipes
from mmvidattn.apis import list_models, load_config

FAMILIES = {'dualformer', 'laps', 'linear_ff', 'mat', 'miniroad', 'testra',
            'vivit', 'vjepa2', 'xvit'}
# Configs with another recipe or shift for the model of a row.
VARIANTS = '*released*', '*_paper_*', '*_v1_*'


def test_pages_and_index_of_this_checkout_are_current(monkeypatch):
    monkeypatch.setattr(recipes, 'load_config',
                        lambda path: load_config(path.stem))
    files = recipes.make_files()
    assert {path.parent.name for path in files} == {*FAMILIES, ROOT.name}
    for path, text in files.items():
        assert path.read_text('utf-8') == text, 'run python docs/recipes.py'


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
    collections = {one['Name']: one for one in content['Collections']}
    assert all((ROOT / one['README']).is_file() for one in
               collections.values())
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
