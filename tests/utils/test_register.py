# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize('init, scope', [(True, 'mmaction'), (False, None)])
def test_sets_scope_if_requested(init, scope):
    code = ('from mmvidattn.utils import register_all_modules\n'
            f'register_all_modules(init_default_scope={init})\n'
            'from mmengine.registry import MODELS, DefaultScope\n'
            'scope = DefaultScope.get_current_instance()\n'
            'print(scope and scope.scope_name)\n'
            "print(MODELS.get('mmaction.LinearVideoTransformer').__name__)")
    out = subprocess.check_output([sys.executable, '-c', code], cwd=ROOT,
                                  text=True)
    assert out.split() == [str(scope), 'LinearVideoTransformer']
