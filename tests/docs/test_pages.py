# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Settings, sizes, tests and manifests on the pages agree with the code."""
import inspect
import re
import shlex

import pytest
import torch
import yaml
from doc_blocks import ROOT
from mmaction.registry import MODELS
from mmengine.runner import Runner

from mmvidattn.apis import load_config
from mmvidattn.apis.config import KNOWN_KEYS
from mmvidattn.commands import make_parser
from mmvidattn.live.server import SCRIPT

SCALE, SETTINGS, RELIABILITY = (
    (ROOT / f'docs/{name}.md').read_text('utf-8')
    for name in ('scale', 'settings', 'reliability'))
LISTED = {*re.findall(r'^\| `([^`]+)`', SETTINGS, re.M)}
# Keys of mmaction2's and mmengine's own programs and configs.
THEIRS = {
    'activation_checkpointing', 'custom_imports', 'efficient_conv_bn_eval',
    'find_unused_parameters', 'model_wrapper_cfg', 'sync_bn', 'test_pipeline',
    'tta_model', 'tta_pipeline', 'val_pipeline'
}


def test_settings_have_all_environment_variables():
    files = [*(ROOT / 'mmvidattn').rglob('*.py'), *ROOT.glob('tools/**/*.py'),
             *ROOT.glob('tests/*.py'), *ROOT.glob('tools/*.sh'),
             ROOT / '.ci/run']
    used = {name for path in files for name in re.findall(
        r'\bMMVIDATTN_[A-Z0-9_]+', path.read_text('utf-8'))}
    assert used == {name for name in LISTED if name.startswith('MMVIDATTN_')}


def test_settings_have_all_config_keys_and_addresses():
    assert KNOWN_KEYS - {*inspect.signature(Runner).parameters} - THEIRS <= (
        LISTED)
    source = (ROOT / 'mmvidattn/live/server.py').read_text('utf-8')
    results = {*re.findall(r"'(/[a-z.]*)'", source), f'/{SCRIPT.name}'}
    assert len(results) == 5
    assert results == {name for name in LISTED if name.startswith('/')}


def test_sizes_of_models_are_those_of_the_configs():
    rows = re.findall(r'^\| `(\w+)` \| ([\d.]+) M \|', SCALE, re.M)
    assert len(rows) == 4
    for name, millions in rows:
        model = load_config(name).model
        model.backbone.pop('init_cfg', None)
        # Blending cannot be built without data.
        model.get('data_preprocessor', {}).pop('blending', None)
        with torch.device('meta'):
            parameters = MODELS.build(model).parameters()
        assert f'{sum(p.numel() for p in parameters) / 1e6:.1f}' == millions


def test_commands_of_reliability_name_tests():
    commands = re.findall(r'`(python -m pytest .*?)`', RELIABILITY)
    assert len(commands) >= 10
    for command in commands:
        words = shlex.split(command)
        tests = re.findall(r'^def (test_\w+)', '\n'.join(
            (ROOT / word).read_text() for word in words
            if word.startswith('tests/')), re.M)
        if '-k' in words:
            for part in words[words.index('-k') + 1].split(' or '):
                assert any(part in name for name in tests), (command, part)


@pytest.fixture
def manifests():
    blocks = re.findall(r'^```yaml\n(.*?)^```$', SCALE, re.M | re.S)
    return [x for block in blocks for x in yaml.safe_load_all(block)]


def test_manifests_match_the_schema_of_kubernetes(manifests):
    validate = pytest.importorskip(
        'kubernetes_validate', reason='pip install kubernetes-validate')
    assert [x['kind'] for x in manifests] == ['Service', 'Job']
    for manifest in manifests:
        validate.validate(manifest, '1.37', strict=True)


def test_pods_of_training_find_the_first_one(manifests):
    service, job = manifests
    name, spec = job['metadata']['name'], job['spec']
    assert service['spec']['selector'] == {
        'batch.kubernetes.io/job-name': name}
    assert service['spec']['clusterIP'] == 'None'
    pod = spec['template']['spec']
    assert pod['subdomain'] == service['metadata']['name']
    container, = pod['containers']
    assert {x['name']: x.get('value') or x['valueFrom']['fieldRef'][
        'fieldPath'] for x in container['env']} == dict(
        NNODES=str(spec['completions']), PORT='29500',
        NODE_RANK="metadata.annotations['batch.kubernetes.io/"
        "job-completion-index']",
        MASTER_ADDR=f'{name}-0.{service["metadata"]["name"]}')
    assert spec['parallelism'] == spec['completions']
    config, number, *rest = container['args']
    assert container['command'] == ['bash', 'tools/dist_train.sh']
    assert int(number) == container['resources']['limits']['nvidia.com/gpu']
    assert make_parser('train').parse_args([config, *rest]).resume == 'auto'
