# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Console command."""
import ast
import re
import subprocess
import sys

import pytest

from mmvidattn import __version__, commands, convert
from mmvidattn.commands import _removed as removed
from mmvidattn.commands._options import FLOWS
from mmvidattn.commands.convert import SOURCES
from mmvidattn.commands.prepare import DATASETS
from mmvidattn.datasets.prepare import RECIPES
from mmvidattn.export import programs
from mmvidattn.live import optical_flow
from mmvidattn.online.window_steps import KERNELS

COMMANDS = commands.find_commands()


@pytest.fixture
def run_command(monkeypatch):
    """Run the console command within this process."""

    def run(*args):
        monkeypatch.setattr(sys, 'argv', ['mmvidattn', *map(str, args)])
        commands.main()

    return run


def test_lists_its_commands_without_importing_them(tmp_path):
    script = ('import sys\n'
              'from mmvidattn import commands\n'
              'commands.main(["--help"])\n'
              'assert "torch" not in sys.modules\n')
    done = subprocess.run([sys.executable, '-c', script], cwd=tmp_path,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    listed = [line.split()[0] for line in done.stdout.splitlines()
              if line.startswith('  ')]
    assert listed == [*COMMANDS]
    assert {'train', 'test', 'predict', 'convert', 'tune-thresholds'} <= {
        *listed}
    assert '  train             Train a model.\n' in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 100


def test_help_imports_only_the_standard_library(tmp_path):
    script = ('import sys\n'
              'from mmvidattn import commands\n'
              'before = {*sys.modules}\n'
              'for name in commands.find_commands():\n'
              '    try:\n'
              '        commands.main([name, "--help"])\n'
              '    except SystemExit as end:\n'
              '        assert end.code == 0, name\n'
              'found = {name.partition(".")[0] for name in sys.modules}\n'
              'found -= {*sys.stdlib_module_names, "mmvidattn",\n'
              '          "__mp_main__"}\n'
              'found = sorted(found - before)\n'
              'assert not found, found\n')
    done = subprocess.run([sys.executable, '-c', script], cwd=tmp_path,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_prints_its_version(run_command, capsys):
    run_command('--version')
    assert capsys.readouterr().out == f'mmvidattn {__version__}\n'


def test_choices_of_options_match_the_code():
    """The options do not import the code that defines the choices."""
    assert {*SOURCES} == {*convert.SOURCES}
    assert [*DATASETS] == [*RECIPES]
    assert FLOWS == optical_flow.FLOWS
    for command, option, choices in (
            ('export', '--output', programs.OUTPUTS),
            ('export', '--normalize', programs.DTYPES),
            ('export', '--dynamic', programs.AXES),
            ('export', '--kernel', KERNELS)):
        text = COMMANDS[command].read_text('utf-8')
        written = re.search(
            rf"'{option}', choices=(\(.*?\))", text, re.DOTALL)[1]
        assert ast.literal_eval(written) == (*choices, ), option


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
    assert commands.describe(COMMANDS[name]) in ' '.join(printed.split())


@pytest.mark.parametrize('name, hint', [
    ('tarin', 'did you mean train'),
    ('tune_thresholds', 'did you mean tune-thresholds'),
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
    ('check-videos', ['workers', 'timeout'], 0),
    ('extract-features', [
        'rate', 'every', 'sample-fps', 'flow-side', 'bound', 'clip-len',
        'frame-interval', 'processes', 'threads', 'batch-size'], 0),
    ('finetune', ['minutes', 'timeout', 'lr', 'batch-size', 'lora'], 0),
    ('finetune', ['workers'], -1), ('targets', ['rate'], 0),
    ('test', ['interval'], 0)])
def test_rejects_numbers_out_of_range(run_command, capsys, command, options,
                                      value):
    for option in options:
        with pytest.raises(SystemExit):
            run_command(command, f'--{option}={value}')
        assert re.search(f'argument --{option}: must be .*got {value}',
                         capsys.readouterr().err)


def test_removed_commands_and_options_are_refused_in_one_line(run_command):
    cases = [([name], name) for name in removed.COMMANDS]
    cases += [([command, f'{option}=1'], f'{command} {option}')
              for command, option in removed.OPTIONS]
    for arguments, name in cases:
        with pytest.raises(SystemExit) as error:
            run_command(*arguments)
        line = str(error.value)
        assert line.startswith(f'mmvidattn: error: {name} was removed; ')
        assert removed.LAST in line and '\n' not in line


def test_removed_names_are_free():
    assert not {*removed.COMMANDS} & {*COMMANDS}
    assert {command for command, _ in removed.OPTIONS} <= {*COMMANDS}
