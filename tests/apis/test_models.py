# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from pathlib import Path

import pytest
import torch
from mmaction.models import Recognizer3D

import mmvidattn
from mmvidattn.apis import find_config, load_config, models
from mmvidattn.utils import config_folder

ROOT = Path(__file__).resolve().parents[2]
NAME = 'linear_ff_tiny_motion'
DEEPER = {'model.backbone.num_layers': 2}


@pytest.fixture
def checkpoint(tmp_path):
    model = mmvidattn.get_model(NAME, cfg_options=DEEPER)
    meta = dict(dataset_meta=dict(classes=['a', 'b']))
    torch.save(dict(state_dict=model.state_dict(), meta=meta),
               tmp_path / 'model.pth')
    return model, tmp_path / 'model.pth'


def test_lists_configs_without_ablations():
    names = mmvidattn.list_models()
    stems = [path.stem for path in (ROOT / 'configs').glob('*.py')]
    assert names == sorted(stems) and NAME in names


def test_lists_ablations():
    names = mmvidattn.list_models(ablations=True)
    assert names == sorted(set(names))
    rows = set(names) - set(mmvidattn.list_models())
    assert len(rows) == 145 == len(names) - len(mmvidattn.list_models())
    for row in rows:
        path = find_config(row)
        assert path.stem == row and not path.exists()
        # LSTR, the predecessor of TeSTra, shares its folder.
        assert row.startswith((path.parents[1].name, 'lstr_'))


def test_pattern_filters_names():
    assert NAME in mmvidattn.list_models('*_motion')
    assert mmvidattn.list_models('none*') == []
    assert mmvidattn.list_models('testra_table04*') == []
    assert mmvidattn.list_models('testra_table04*', ablations=True) == [
        'testra_table04_box', 'testra_table04_laplace']


@pytest.mark.parametrize('name', [
    'linear_ff_table05_sigmoid',
    'configs/linear_ff/ablations/linear_ff_table05_sigmoid.py'])
def test_finds_row_by_name_and_path(name, tmp_path):
    assert find_config(name).stem == 'linear_ff_table05_sigmoid'
    cfg = load_config(name, {'model.backbone.num_layers': 2})
    assert Path(cfg.filename).name == 'linear_ff_table05_sigmoid.py'
    want = load_config('linear_ff_ssv2').to_dict()
    want['model']['backbone'].update(num_layers=2, attention=dict(
        type='LinearAttention', kernel='sigmoid', offset=0.))
    assert cfg.to_dict() == want
    cfg.dump(tmp_path / 'row.py')
    assert load_config(tmp_path / 'row.py').to_dict() == want


def test_finds_config_by_the_name_for_bases():
    assert find_config('mmvidattn::linear_ff_ssv2.py') == (
        ROOT / 'configs/linear_ff_ssv2.py')


def test_a_table_is_not_a_config():
    table = ROOT / 'configs/testra/ablations/testra.py'
    with pytest.raises(ValueError, match='testra_table04_laplace'):
        load_config(table)


def test_finds_the_configs_of_a_wheel_first(tmp_path, monkeypatch):
    for folder in ('wheel/family/ablations', 'wheel/_base_/models',
                   'checkout'):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / f'{Path(folder).name}.py').write_text(
            "rows = dict(ablations_row=dict(\n"
            "    table='Table 1', row='r', base='a'))\n")
    folders = tmp_path / 'wheel', tmp_path / 'checkout'
    monkeypatch.setattr(config_folder, 'CONFIG_FOLDERS', folders)
    assert mmvidattn.list_models(ablations=True) == ['ablations_row']
    assert find_config('ablations_row').parent.name == 'ablations'
    monkeypatch.setattr(config_folder, 'CONFIG_FOLDERS', folders[1:])
    assert mmvidattn.list_models() == ['checkout']
    monkeypatch.setattr(config_folder, 'CONFIG_FOLDERS', (tmp_path / 'none', ))
    with pytest.raises(FileNotFoundError, match='no configs in .*none'):
        mmvidattn.list_models()


def test_model_is_a_recognizer_in_eval_mode():
    model = mmvidattn.get_model(NAME, cfg_options=DEEPER)
    assert isinstance(model, Recognizer3D)
    assert not any(module.training for module in model.modules())
    assert model.cfg.model.backbone.num_layers == 2
    clips = torch.randn(2, 3, 3, 8, 64, 64)
    with torch.no_grad():
        logits = model(clips, mode='tensor', stage='head')
        first = model(clips[:1, :1], mode='tensor', stage='head')
    assert logits.shape == (6, 8)
    torch.testing.assert_close(logits[:1], first)


def test_weights_are_random_without_a_checkpoint(capsys):
    torch.manual_seed(0)
    one = mmvidattn.get_model(NAME, cfg_options=DEEPER)
    two = mmvidattn.get_model(NAME, cfg_options=DEEPER)
    weights = [m.cls_head.fc_cls.weight.detach() for m in (one, two)]
    assert not torch.equal(*weights)
    # init_weights has run: nn.Linear would draw uniformly within 1/8.
    assert weights[0].std() == pytest.approx(0.02, rel=0.2)
    assert capsys.readouterr().out == ''


@pytest.mark.parametrize('name', [NAME, ROOT / f'configs/{NAME}.py'],
                         ids=['name', 'path'])
def test_loads_the_checkpoint(checkpoint, name):
    saved, path = checkpoint
    model = mmvidattn.get_model(name, path, cfg_options=DEEPER)
    for key, value in saved.state_dict().items():
        assert torch.equal(model.state_dict()[key], value), key
    assert model.dataset_meta == dict(classes=['a', 'b'])


def test_model_is_on_the_device():
    model = mmvidattn.get_model(NAME, device='meta', cfg_options=DEEPER)
    assert {p.device.type for p in model.parameters()} == {'meta'}


def test_rejects_checkpoint_of_another_model(checkpoint):
    with pytest.raises(ValueError, match='model.pth does not fit the model'):
        mmvidattn.get_model(NAME, checkpoint[1])


@pytest.mark.parametrize(
    'name, kind, error',
    [('linear_ff_tiny_motoin', ValueError,
      "no model 'linear_ff_tiny_motoin'; did you mean linear_ff_tiny_motion"),
     ('linear_ff_table05_rleu', ValueError,
      'did you mean .*linear_ff_table05_relu'),
     ('configs/laps/ablations/table99_none.py', FileNotFoundError,
      'no config file configs/laps/ablations/table99_none.py'),
     ('configs/laps/ablations/laps_table01_leap.yml', FileNotFoundError,
      'no config file'),
     ('configs/laps/tiny_motion.py', FileNotFoundError,
      'no config file configs/laps/tiny_motion.py'),
     ('zzz', ValueError, "no model 'zzz'; mmvidattn.list_models"),
     ('configs/none.py', FileNotFoundError, 'no config file configs/none.py'),
     ('none.py', FileNotFoundError, 'no config file none.py')])
def test_rejects_unknown_names(name, kind, error):
    with pytest.raises(kind, match=error):
        mmvidattn.get_model(name)


@pytest.mark.filterwarnings('ignore:option .*num_layrs has no effect')
def test_rejects_misspelled_option():
    with pytest.raises(TypeError, match="LinearVideoTransformer.*'num_layrs'"):
        mmvidattn.get_model(
            NAME, cfg_options={'model.backbone.num_layrs': 1})


def test_finds_hash_in_metafile(tmp_path, monkeypatch):
    folder = tmp_path / 'family'
    folder.mkdir()
    (folder / 'metafile.yml').write_text(
        'Models:\n  - Name: a\n  - Name: b\n    SHA256: 0a1b\n'
        '    Weights: https://x.org/b.pth\n')
    monkeypatch.setattr(config_folder, 'CONFIG_FOLDERS', (tmp_path, ))
    assert models.published_hash('https://x.org/b.pth') == '0a1b'
    assert models.published_hash('https://x.org/a.pth') is None
    assert models.published_hash('b.pth') is None
