# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = '''
from mmengine.registry import MODELS, DefaultScope
from mmvidattn.utils import register_all_modules
for init in False, True:
    register_all_modules(init_default_scope=init)
    scope = DefaultScope.get_current_instance()
    print(scope and scope.scope_name)
    print(MODELS.get('mmaction.LinearVideoTransformer').__name__)
'''


def test_sets_scope_if_requested():
    out = subprocess.check_output([sys.executable, '-c', CODE], cwd=ROOT,
                                  text=True)
    name = 'LinearVideoTransformer'
    assert out.split() == ['None', name, 'mmaction', name]
