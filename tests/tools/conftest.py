# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import shutil

import pytest
import torch
from helpers import ROOT, run_program
from live_fixtures import *  # noqa: F403

import mmvidattn

NUM_VAL = 7


@pytest.fixture(scope='session')
def run_main():
    """Run a program of tools/ or a command within this process."""

    def run(tool, *args):
        run_program(f'tools/{tool}' if '.' in tool else tool, *args)

    return run


@pytest.fixture(scope='session')
def small_config(motion_dir, tmp_path_factory):
    """The quickstart's config, smaller, with an odd number of test videos."""
    folder = tmp_path_factory.mktemp('config')
    lines = (motion_dir / 'val.txt').read_text().splitlines()
    (folder / 'val.txt').write_text('\n'.join(lines[:NUM_VAL]) + '\n')
    config = folder / 'small.py'
    config.write_text(f'''
_base_ = ['{ROOT}/configs/linear_ff_tiny_motion.py']
model = dict(backbone=dict(num_layers=1))
motion = dict(
    data_root='{motion_dir}',
    metainfo=dict(classes='{motion_dir}/label_map.txt'))
here = dict(num_workers=0, persistent_workers=False)
train_dataloader = dict(batch_size=4, dataset=motion, **here)
val_dataloader = dict(
    batch_size=2, dataset=dict(ann_file='{folder}/val.txt', **motion), **here)
test_dataloader = val_dataloader
train_cfg = dict(max_epochs=2, val_interval=1)
default_hooks = dict(logger=dict(interval=1))
''')
    return config


@pytest.fixture(scope='session')
def small_checkpoint(small_config, motion_dir):
    """Untrained model of ``small_config`` whose scores depend on the video."""
    torch.manual_seed(0)
    model = mmvidattn.get_model(small_config)
    # With initial weights, logits hardly depend on the video.
    for layer in model.cls_head.fc_cls, model.cls_head.fc_hidden:
        torch.nn.init.normal_(layer.weight, std=.3)
    path = small_config.parent / 'small.pth'
    classes = (motion_dir / 'label_map.txt').read_text().splitlines()
    torch.save(
        dict(state_dict=model.state_dict(),
             meta=dict(dataset_meta=dict(classes=classes))), path)
    return path


@pytest.fixture(scope='session')
def make_classes(motion_dir):
    """Write three short videos for each class into a folder of the class."""

    def make(root, names):
        for number, name in enumerate(names):
            (root / name).mkdir(parents=True)
            for i, path in enumerate(('train/{:06}', 'val/{:06}',
                                      'train/{:06}')):
                shutil.copy(
                    motion_dir / f'{path.format(2 * number + 8 * (i == 2))}'
                    '.mp4', root / name / f'a {i}.mp4')
        return root

    return make


@pytest.fixture(scope='session')
def video(motion_dir):
    return motion_dir / 'val/000000.mp4'
