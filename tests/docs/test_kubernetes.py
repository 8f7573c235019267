# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The manifests in the documentation are valid and agree with each other."""
import re
from pathlib import Path

import pytest
import yaml

from mmvidattn.commands import make_parser

PAGE = Path(__file__).resolve().parents[2] / 'docs/scale.md'
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


def manifests(text=None):
    blocks = re.findall(r'^```yaml\n(.*?)^```$',
                        text or PAGE.read_text('utf-8'), re.M | re.S)
    return [x for block in blocks for x in yaml.safe_load_all(block)]


def container_of(job):
    container, = job['spec']['template']['spec']['containers']
    return container


def variables_of(container):
    return {x['name']: x.get('value')
            or x['valueFrom']['fieldRef']['fieldPath']
            for x in container['env']}


def test_manifests_match_the_schema_of_kubernetes():
    validate = pytest.importorskip(
        'kubernetes_validate', reason='pip install kubernetes-validate')
    found = manifests()
    assert [x['kind'] for x in found] == ['Service', 'Job']
    for manifest in found:
        validate.validate(manifest, '1.37', strict=True)
    # The validator finds misspelled fields.
    found[1]['spec']['completionMod'] = 'Indexed'
    with pytest.raises(validate.ValidationError):
        validate.validate(found[1], '1.37', strict=True)


def test_pods_of_training_find_the_first_one():
    service, job = manifests()
    name, spec = job['metadata']['name'], job['spec']
    assert service['spec']['selector'] == {
        'batch.kubernetes.io/job-name': name}
    assert service['spec']['clusterIP'] == 'None'
    assert spec['template']['spec']['subdomain'] == service['metadata']['name']
    container = container_of(job)
    assert variables_of(container) == dict(
        NNODES=str(spec['completions']), NODE_RANK=INDEX, PORT='29500',
        MASTER_ADDR=f'{name}-0.{service["metadata"]["name"]}')
    assert spec['parallelism'] == spec['completions']
    config, number, *rest = container['args']
    assert container['command'] == ['bash', 'tools/dist_train.sh']
    assert int(number) == container['resources']['limits']['nvidia.com/gpu']
    assert make_parser('train').parse_args([config, *rest]).resume == 'auto'
