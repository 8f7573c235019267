# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Console command."""
import re
import subprocess
import sys

import pytest

import mmvidattn_cli

COMMANDS = mmvidattn_cli.find_commands()


@pytest.fixture
def run_command(monkeypatch):
    """Run the console command within this process."""

    def run(*args):
        monkeypatch.setattr(sys, 'argv', ['mmvidattn', *map(str, args)])
        mmvidattn_cli.main()

    return run


def test_lists_its_commands_without_importing_them(tmp_path):
    script = ('import sys, mmvidattn_cli\n'
              'mmvidattn_cli.main(["--help"])\n'
              'assert not {"mmvidattn", "torch"} & {*sys.modules}\n')
    done = subprocess.run([sys.executable, '-c', script], cwd=tmp_path,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    listed = [line.split()[0] for line in done.stdout.splitlines()
              if line.startswith('  ')]
    assert listed == [*COMMANDS]
    assert {'train', 'test', 'predict', 'convert', 'grad-cam'} <= {*listed}
    assert '  train             Train a model.\n' in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 100


@pytest.mark.parametrize('name', COMMANDS)
def test_every_command_prints_its_arguments(run_command, capsys, name):
    try:
        run_command(name, '--help')
    except SystemExit as end:
        assert end.code == 0
        usage = f'usage: mmvidattn {name} [-h]'
    else:
        usage = f'mmvidattn {name} '
    printed = capsys.readouterr().out
    assert usage in printed
    assert mmvidattn_cli.describe(COMMANDS[name]) in ' '.join(printed.split())


@pytest.mark.parametrize('name, hint', [
    ('tarin', 'did you mean train'), ('grad_cam', 'did you mean grad-cam'),
    ('zzz', "'zzz'; mmvidattn --help lists all")])
def test_suggests_the_nearest_name(run_command, name, hint):
    with pytest.raises(SystemExit, match=hint):
        run_command(name)


def test_module_runs_the_command(tmp_path):
    done = subprocess.run(
        [sys.executable, '-m', 'mmvidattn', 'train', 'none.py'],
        cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == ('mmvidattn train: error: no config file none.py\n')


@pytest.mark.parametrize('command, options, value', [
    ('attention-map', ['max-rows'], 0),
    ('check-videos', ['workers', 'timeout'], 0),
    ('extract-features', [
        'rate', 'every', 'sample-fps', 'flow-side', 'bound', 'clip-len',
        'frame-interval', 'processes', 'threads', 'batch-size'], 0),
    ('finetune', ['minutes', 'timeout', 'lr', 'batch-size', 'lora',
                  'variants'], 0),
    ('finetune', ['workers'], -1), ('targets', ['rate'], 0),
    ('test', ['interval'], 0)])
def test_rejects_numbers_out_of_range(run_command, capsys, command, options,
                                      value):
    for option in options:
        with pytest.raises(SystemExit):
            run_command(command, f'--{option}={value}')
        assert re.search(f'argument --{option}: must be .*got {value}',
                         capsys.readouterr().err)
