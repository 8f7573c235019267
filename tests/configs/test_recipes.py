# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Tables of recipes, and the model zoo of the metafiles."""
import re
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

CONFIG = """
model = dict(
    backbone=dict(),
    cls_head=dict(average_clips='score'),
    data_preprocessor=dict(mean=[1.5], std=[2]))
sampler = dict(type='SampleFrames', clip_len=8, frame_interval=2)
train_dataloader = dict(batch_size=4, dataset=dict(pipeline=[
    dict(type='DecordInit'), sampler, dict(type='DecordDecode'),
    dict(type='RandomRescale', scale_range=(256, 320)),
    dict(type='RandomCrop', size=224), dict(type='PackActionInputs')]))
test_dataloader = dict(dataset=dict(pipeline=[
    dict(type='UniformSample', clip_len=8, num_clips=2),
    dict(type='Resize', scale=(-1, 256)),
    dict(type='ThreeCrop', crop_size=224)]))
optim_wrapper = dict(
    optimizer=dict(type='SGD', lr=0.5, weight_decay=1e-4),
    accumulative_counts=3)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.1, begin=0, end=2.5),
    dict(type='CosineAnnealingLR', begin=2.5, end=30)]
train_cfg = dict(max_epochs=30)
auto_scale_lr = dict(base_batch_size=32)
"""
RECIPES = """
configs: [a_*]
start: {'*': an image}
authors:
  - {config: a_k400, of: paper, batch: 4 x 8 x 3, epochs: '35, cosine',
     augmentation: none at all}
"""
OURS = ('| `a_k400` | 4 x 8 x 3 | SGD 0.5 | 0.0001 | 2.5 from 0.1 | 30, '
        'cosine from 2.5 | 8 x 2 SampleFrames | 256-320, 224 | 2 x 3 '
        'UniformSample | 256, 224 | score | an image |')
THEIRS = ('| paper |  | - | - | - | **35, cosine** | - | - | - | - '
          '| - | - |')


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / 'configs/a'
    folder.mkdir(parents=True)
    (tmp_path / 'configs/a_k400.py').write_text(CONFIG)
    (tmp_path / 'configs/a_tiny_motion.py').write_text('')
    (folder / 'recipes.yml').write_text(RECIPES)
    (folder / 'metafile.yml').write_text('Models: []\n')
    (folder / 'README.md').write_text('# A\n\nThe rest.\n')
    return tmp_path


def test_pages_and_index_of_this_checkout_are_current(monkeypatch):
    monkeypatch.setattr(recipes, 'load_config',
                        lambda path: load_config(path.stem))
    files = recipes.make_files()
    assert {path.parent.name for path in files} == {*FAMILIES, ROOT.name}
    for path, text in files.items():
        assert path.read_text('utf-8') == text, 'run python docs/recipes.py'


def test_page_has_recipes_of_configs_and_authors(checkout):
    files = recipes.make_files(checkout)
    lines = files[checkout / 'configs/a/recipes.md'].splitlines()
    assert lines[lines.index(OURS) + 1] == THEIRS
    assert '* `a_k400`: `RandomRescale(scale_range=(256, 320))`, ' \
        '`RandomCrop(size=224)`, `normalize(mean=(1.5), std=(2))`.' in lines
    assert '* `a_k400`: none at all.' in lines
    assert lines[0] == '# A: recipes' and recipes.NOTE in lines
    index = yaml.safe_load(files[checkout / 'model-index.yml'])
    assert index == dict(Import=['configs/a/metafile.yml'])


@pytest.mark.parametrize('path, old, new, message', [
    ('configs/a/recipes.yml', 'config: a_k400', 'config: a_k600',
     'recipes.yml: config must be one of a_k400, got a_k600'),
    ('configs/a/recipes.yml', 'epochs', 'epoch', 'got epoch'),
    ('configs/a/recipes.yml', "'*'", 'b_*', 'no pattern of "start" matches'),
    ('configs/a/recipes.yml', 'authors:', 'authors: {', 'is not valid YAML'),
    ('configs/a_k400.py', 'base_batch_size=32', 'base_batch_size=30',
     'must be a multiple of the batch size 4, got 30')])
def test_reports_the_fault(checkout, path, old, new, message):
    changed = checkout / path
    changed.write_text(changed.read_text().replace(old, new))
    with pytest.raises(ValueError, match=re.escape(message)):
        recipes.make_files(checkout)


def _models(family):
    path = ROOT / f'configs/{family}/metafile.yml'
    return yaml.safe_load(path.read_text())['Models']


def test_index_has_all_families_and_configs():
    index = yaml.safe_load((ROOT / 'model-index.yml').read_text())
    assert set(index['Import']) == {
        f'configs/{family}/metafile.yml' for family in FAMILIES}
    rows = {model['Name'] for family in FAMILIES for model in _models(family)}
    others = *recipes.MINIATURES, *VARIANTS
    missing = {name for name in list_models() if name not in rows
               and not any(fnmatch(name, other) for other in others)}
    assert not missing


@pytest.mark.parametrize('family', sorted(FAMILIES))
def test_metafiles_match_configs_and_pages(family):
    page = (ROOT / f'configs/{family}/README.md').read_text()
    lines = {re.match(r'\| `(\w+)\.py` \|', line)[1]: line
             for line in page.splitlines()
             if re.match(r'\| `(\w+)\.py` \|', line)}
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
