# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Short form of the soak, which runs for minutes."""
import json

import pytest
import torch

from tools.soak.kill_and_resume import differences

pytestmark = pytest.mark.slow


@pytest.mark.parametrize('options', [
    ('--trials', 4),
    ('--trials', 4, '--processes', 2),
    ('--trials', 4, '--config', 'tsn'),
    ('--trials', 4, '--signal', 'TERM')], ids=lambda options: ' '.join(
        map(str, options)))
def test_killed_and_resumed_is_bit_equal(run_tool, motion_dir, tmp_path,
                                         options):
    (tmp_path / 'soak').mkdir()
    # The soak would write the same data set.
    (tmp_path / 'soak/motion').symlink_to(motion_dir)
    done = run_tool('soak/kill_and_resume.py', *options, '--out', 'out.json',
                    '--folder', tmp_path / 'soak', cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    trials = options[1]
    assert f'{trials} of {trials} runs ended bit-equal' in done.stdout
    lines = [json.loads(line)
             for line in (tmp_path / 'out.json').read_text().splitlines()]
    assert len(lines) == trials
    code = 143 if 'TERM' in options else -9
    for line in lines:
        assert set(line['killed']) == {code} and not any(line['resumed'])


def test_finds_each_kind_of_difference():
    one = dict(a=torch.zeros(2), b=[1, dict(c=2.)], time=1)
    assert not list(differences(one, dict(one, time=2)))
    for two in (dict(one, a=-torch.zeros(2)), dict(one, a=torch.ones(2)),
                dict(one, b=[1, dict(c=2.5)]), dict(one, b=[1]),
                dict(one, d=1), dict(one, a=torch.zeros(2).double())):
        assert list(differences(one, two))
