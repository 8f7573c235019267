# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The page of settings lists every setting."""
import inspect
import re

from doc_blocks import ROOT
from mmengine.runner import Runner

from mmvidattn.apis.config import KNOWN_KEYS
from mmvidattn.live.server import SCRIPT

PAGE = (ROOT / 'docs/settings.md').read_text('utf-8')
LISTED = {*re.findall(r'^\| `([^`]+)`', PAGE, re.MULTILINE)}
# Keys of mmaction2's and mmengine's own programs and configs.
THEIRS = {
    'activation_checkpointing', 'custom_imports', 'efficient_conv_bn_eval',
    'find_unused_parameters', 'model_wrapper_cfg', 'sync_bn', 'test_pipeline',
    'tta_model', 'tta_pipeline', 'val_pipeline'
}


def test_environment_variables():
    files = [*(ROOT / 'mmvidattn').rglob('*.py'), *ROOT.glob('tools/**/*.py'),
             *ROOT.glob('tests/*.py'), *ROOT.glob('tools/*.sh'),
             ROOT / '.ci/run']
    used = {name for path in files for name in re.findall(
        r'\bMMVIDATTN_[A-Z0-9_]+', path.read_text('utf-8'))}
    assert used == {name for name in LISTED if name.startswith('MMVIDATTN_')}


def test_config_keys():
    ours = KNOWN_KEYS - {*inspect.signature(Runner).parameters} - THEIRS
    assert ours <= LISTED


def test_addresses():
    source = (ROOT / 'mmvidattn/live/server.py').read_text('utf-8')
    results = {*re.findall(r"'(/[a-z.]*)'", source), f'/{SCRIPT.name}'}
    assert len(results) == 5
    assert results == {name for name in LISTED if name.startswith('/')}
