# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Bundles and published checkpoints on the command line, default model."""
import hashlib
import re

import pytest
import torch
from safetensors import safe_open

import mmvidattn
from mmvidattn.apis import load_bundle
from mmvidattn.apis.models import find_default
from mmvidattn.commands._model_argument import split_model

NAME = 'linear_ff_tiny_motion'


@pytest.fixture
def bundle(run_main, small_config, small_checkpoint, tmp_path):
    path = tmp_path / 'bundle'
    run_main('bundle', small_config, small_checkpoint, path, '--on', '.2',
             '--off', '.1', '--min-duration', '0', '--seconds', '.4')
    return path


def test_writes_a_bundle(run_main, bundle, small_config, small_checkpoint,
                         tmp_path, capsys):
    result = load_bundle(bundle)
    assert result.config.online == dict(
        events=dict(on=.2, off=.1, min_duration=0.), seconds=.4)
    names = [f'name {i}' for i in range(8)]
    (tmp_path / 'names.txt').write_text('\n'.join(names))
    run_main('bundle', small_config, small_checkpoint, bundle, '--force',
             '--labels', tmp_path / 'names.txt')
    assert load_bundle(bundle).labels == names
    out = capsys.readouterr().out
    assert result.sha256 in out and 'name 2, ...' in out


def test_commands_take_a_bundle(run_main, bundle, video, small_config,
                                small_checkpoint, tmp_path, capsys):
    results = []
    for words in [bundle], [small_config, small_checkpoint]:
        # An option may come between the arguments, as with argparse.
        run_main('predict', video, '--json', tmp_path / 'out.json', *words)
        results.append((tmp_path / 'out.json').read_text())
    assert results[0] == results[1]
    run_main('stream', video, bundle, '--events', tmp_path / 'events.jsonl')
    assert 'the last 0.40 s (10 frames)' in capsys.readouterr().out
    assert '"start"' in (tmp_path / 'events.jsonl').read_text()


def test_default_model(run_main, video, motion_dir, capsys):
    results = mmvidattn.VideoClassifier(NAME, 'default')(motion_dir / 'val')
    names, truth = ((motion_dir / file).read_text().splitlines()
                    for file in ('label_map.txt', 'val.txt'))
    # 94 % of 1000 further videos are right.
    assert sum(one.predictions[0].label == names[int(line.split()[1])]
               for one, line in zip(results, truth, strict=True)) >= 6
    run_main('predict', video)
    out, error = capsys.readouterr()
    assert f'no model was given. Using {NAME}' in error
    best = mmvidattn.VideoClassifier(NAME, 'default')(video).predictions[0]
    assert f'{best.score:6.3f}  {best.label}' in out
    run_main('stream', video)
    out, error = capsys.readouterr()
    assert f'Using {NAME}' in error and '0.88 s (22 frames)' in out


@pytest.mark.parametrize('words, model', [
    (['.', NAME, 'x.pth'], (NAME, 'x.pth')),
    (['.', NAME, 'default'], (NAME, 'default')),
    (['.', f'configs/{NAME}.py', 'weights'], (f'configs/{NAME}.py',
                                              'weights')),
    (['0', 'rtsp://camera'], (str(find_default(NAME)), None))])
def test_splits_the_model_from_the_sources(words, model, monkeypatch,
                                           pytestconfig):
    monkeypatch.chdir(pytestconfig.rootpath)
    sources, *result = split_model(words)
    assert tuple(result) == model
    assert sources == (words if model[1] is None else ['.'])


def test_folder_of_a_fine_tuning_is_no_bundle(bundle):
    with pytest.raises(ValueError, match='did you mean .*bundle?'):
        split_model(['.', str(bundle.parent)])


def test_names_classes_that_commands_refuse(
        run_main, small_config, small_checkpoint, tmp_path, capsys):
    (tmp_path / 'my_transformer.py').write_text("""
from mmaction.registry import MODELS
from mmvidattn.backbones import LinearVideoTransformer

@MODELS.register_module(force=True)
class MyTransformer(LinearVideoTransformer):
    pass
""")
    (tmp_path / 'mine.py').write_text(f"""
_base_ = '{small_config}'
custom_imports = dict(imports=['my_transformer'])
model = dict(backbone=dict(type='MyTransformer'))
""")
    for config in tmp_path / 'mine.py', small_config:
        run_main('bundle', config, small_checkpoint, tmp_path / config.stem)
        assert ('MyTransformer is neither' in capsys.readouterr().out) == (
            config != small_config)


def test_publishes_only_weights_and_config(run_main, small_config,
                                           small_checkpoint, tmp_path, capsys):
    saved = torch.load(small_checkpoint, weights_only=True)
    torch.save(
        dict(saved, optimizer=dict(state={}), message_hub={},
             ema_state_dict=saved['state_dict'], exact_resume={}),
        tmp_path / 'epoch_2.pth')
    run_main('publish_model.py', small_config, tmp_path / 'epoch_2.pth',
             '--out-dir', tmp_path / 'out')
    paths = sorted((tmp_path / 'out').iterdir())
    assert {path.suffix for path in paths} == {'.pth', '.safetensors'}
    printed = capsys.readouterr().out
    for path in paths:
        match = re.fullmatch(r'small_\d{8}-([0-9a-f]{8})\.\w+', path.name)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert digest.startswith(match[1]) and digest in printed
        model = mmvidattn.get_model(small_config, path)
        for name, value in saved['state_dict'].items():
            assert torch.equal(model.state_dict()[name], value)
    pth, safe = sorted(paths, key=lambda path: path.suffix)
    content = torch.load(pth, weights_only=True)
    assert sorted(content) == ['meta', 'state_dict']
    assert sorted(content['meta']) == [
        'cfg', 'dataset_meta', 'mmvidattn_version']
    assert 'LinearVideoTransformer' in content['meta']['cfg']
    assert 'work_dir' not in content['meta']['cfg']
    with safe_open(safe, 'pt') as file:
        assert file.metadata()['cfg'] == content['meta']['cfg']
