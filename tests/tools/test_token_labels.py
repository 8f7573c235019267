# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope

from mmvidattn.apis import load_config
from mmvidattn.recognizers.token_label_store import TokenLabelStore

TOOL = 'data/token_labels.py'


@pytest.fixture(scope='module')
def config(motion_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp('labels')
    (folder / 'few.txt').write_text('\n'.join(
        (motion_dir / 'train.txt').read_text().splitlines()[:3]))
    path = folder / 'config.py'
    root = load_config('dualformer_tiny_tl_motion').filename
    path.write_text(f'''
_base_ = ['{root}']
arch = dict(embed_dims=8, num_layers=(1, 1, 1, 2), num_heads=(1, 1, 1, 1))
model = dict(
    backbone=dict(arch=arch),
    cls_head=dict(in_channels=64),
    teacher=dict(backbone=dict(arch=arch), cls_head=dict(in_channels=64)),
    teacher_checkpoint=None,
    label_store='{folder}/store')
train_pipeline = [
    dict(type='FixedViews', num_views=2, transforms=[
        dict(type='DecordInit'),
        dict(type='UniformSample', clip_len=8),
        dict(type='DecordDecode'),
        dict(type='Resize', scale=(64, 64), keep_ratio=False)]),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs', meta_keys=('filename', 'view'))]
train_dataloader = dict(dataset=dict(
    data_root='{motion_dir}', ann_file='{folder}/few.txt', metainfo=None,
    pipeline=train_pipeline))
''')
    return path


def test_writes_the_labels_of_the_teacher_and_resumes(
        run_main, config, capsys):
    cfg = load_config(config)
    folder = cfg.model.label_store
    args = config, '--workers', 0, '--device', 'cpu', '--batch-size', 4
    run_main(TOOL, *args)
    assert '6 of 6 views' in capsys.readouterr().out
    store = TokenLabelStore(folder, writable=True)
    assert list(store.missing()) == []
    was = store.values[1].copy()
    store.values[1, 0] = 0
    store.done[1, 0] = False
    store.values[1, 1] = 7
    store.values.flush(), store.done.flush()
    run_main(TOOL, *args)
    assert '5 of 6 views exist' in capsys.readouterr().out
    again = TokenLabelStore(folder)
    # Only the missing labels were written again.
    assert torch.allclose(torch.tensor(again.values[1, 0]),
                          torch.tensor(was[0]), atol=1e-5)
    assert (again.values[1, 1] == 7).all()

    # Training finds the labels of the clips that it sees.
    from mmaction.registry import DATASETS
    init_default_scope('mmaction')
    cfg.model.teacher = None
    model = MODELS.build(cfg.model)
    dataset = DATASETS.build(cfg.train_dataloader.dataset)
    samples = [dataset[i]['data_samples'] for i in range(3)]
    labels = model.stored_labels(samples, tuple(again.settings['shape'][:3]))
    assert labels.shape[0] == 3 and labels.shape[-1] == 8


@pytest.mark.parametrize('options, message', [
    (['model.label_store=None'], 'a label_store'),
    (['train_dataloader.dataset.pipeline.0.type=Compose'], 'one FixedViews')],
    ids=['no-store', 'no-views'])
def test_error_names_the_fault(run_main, config, options, message):
    with pytest.raises(SystemExit, match=f'^token_labels.py.*{message}'):
        run_main(TOOL, config, '--device', 'cpu', '--cfg-options', *options)
