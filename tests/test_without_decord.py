# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Training, testing and prediction without decord (Linux on ARM, macOS)."""
import subprocess
import sys

CODE = """
import sys
sys.modules['decord'] = None
import numpy as np
import mmvidattn
# A program that imports only mmvidattn can use every package.
for name in mmvidattn.__all__:
    getattr(mmvidattn, name)
print('NAME', mmvidattn.convert.convert.__name__)
from mmvidattn.commands import main

name, data, out = sys.argv[1:]
options = ['--work-dir', out, '--cfg-options', f'data_root={data}',
           'train_cfg.max_epochs=1', 'train_dataloader.num_workers=0',
           'val_dataloader.num_workers=0', 'test_dataloader.num_workers=0',
           'train_dataloader.persistent_workers=False',
           'val_dataloader.persistent_workers=False',
           'test_dataloader.persistent_workers=False']
try:
    main(['train', name, *options, 'video_backend=decord'])
except SystemExit as error:
    print('WITHOUT', error)
try:
    mmvidattn.VideoClassifier(name, cfg_options=dict(video_backend='decord'))
except ImportError as error:
    print('WITHOUT', error)
main(['train', name, *options])
main(['test', name, f'{out}/epoch_1.pth', *options])
answer = mmvidattn.VideoClassifier(name)(f'{data}/val/000000.mp4')
print('ANSWER', answer.predictions[0].label)
assert sys.modules['decord'] is None
"""


def test_trains_tests_and_predicts(motion_dir, tmp_path):
    done = subprocess.run(
        [sys.executable, '-c', CODE, 'linear_ff_tiny_motion', motion_dir,
         tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for text in ('Epoch(train)', 'Epoch(test)', 'ANSWER ', 'NAME convert\n',
                 'training waited for data in',
                 'a worker opened and decoded a clip in'):
        assert text in done.stdout
    errors = [line for line in done.stdout.splitlines()
              if line.startswith('WITHOUT')]
    assert len(errors) == 2
    assert all('--cfg-options video_backend=pyav' in line for line in errors)
