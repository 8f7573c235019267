# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Console command."""
import re
import subprocess
import sys
import warnings

import pytest
from helpers import ROOT

from mmvidattn import __version__, commands

COMMANDS = commands.find_commands()
HELP = '''
import sys, time
from mmvidattn import commands
before = {*sys.modules}
commands.main(["--help"])
for name in commands.find_commands():
    began = time.process_time()
    try:
        commands.main([name, "--help"])
    except SystemExit as end:
        assert end.code == 0, name
    assert time.process_time() - began < 0.3, name
found = {name.partition(".")[0] for name in {*sys.modules} - before}
print("foreign", found - {*sys.stdlib_module_names, "mmvidattn",
                          "__mp_main__"})
'''


def test_help_of_each_command_is_fast(tmp_path):
    """It imports nothing but the standard library."""
    done = subprocess.run([sys.executable, '-c', HELP], cwd=tmp_path,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith('foreign set()\n'), done.stdout[-300:]
    overview, *rest = done.stdout.split('usage: mmvidattn ')[1:]
    assert [line.split()[0] for line in overview.splitlines()
            if line.startswith('  ')] == [*COMMANDS]
    assert '  train             Train a model.\n' in overview
    assert max(map(len, overview.splitlines())) < 100
    assert [text.split()[0] for text in rest] == [*COMMANDS]
    for name, text in zip(COMMANDS, rest):
        assert commands.describe(COMMANDS[name]) in ' '.join(text.split())


def test_prints_its_version(run_main, capsys):
    run_main('--version')
    assert capsys.readouterr().out == f'mmvidattn {__version__}\n'


def test_own_warnings_are_one_line(run_main):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warnings, 'formatwarning', warnings.formatwarning)
        run_main('--version')
        own, other = (warnings.formatwarning('careful', UserWarning, path, 3)
                      for path in (commands.__file__, __file__))
    assert own == 'warning: careful\n' and '3: UserWarning' in other


def test_tools_with_names_of_mmaction_start_their_command(run_main, capsys):
    doors = [path for path in (ROOT / 'tools').rglob('*.py')
             if '\nThe same as ``mmvidattn ' in path.read_text('utf-8')]
    assert len(doors) == 9
    for path in doors:
        with pytest.raises(SystemExit) as end:
            run_main(str(path.relative_to(ROOT / 'tools')), '--help')
        assert not end.value.code
        assert capsys.readouterr().out.startswith(
            f'usage: mmvidattn {path.stem} ')


def test_wrong_option_is_one_line_with_a_suggestion(run_main, capsys):
    with pytest.raises(SystemExit) as end:
        run_main('finetune', 'videos', '--minuts', 3)
    assert end.value.code == 2
    assert capsys.readouterr().err == (
        'mmvidattn finetune: error: unrecognized arguments: --minuts 3; '
        'did you mean --minutes? (mmvidattn finetune --help)\n')


@pytest.mark.parametrize('words, error', [
    ('tarin', "mmvidattn: error: no command 'tarin'; did you mean train? "),
    # The reader of the output has gone.
    ('--help | true', '')])
def test_module_runs_the_command(tmp_path, words, error):
    done = subprocess.run(
        f'"{sys.executable}" -m mmvidattn {words}', shell=True, cwd=tmp_path,
        capture_output=True, text=True)
    assert done.returncode == bool(error)
    assert done.stderr.startswith(error) and bool(done.stderr) == bool(error)


@pytest.mark.parametrize('command, options, value', [
    ('check-videos', ['workers', 'timeout'], 0),
    ('extract-features', [
        'rate', 'every', 'sample-fps', 'flow-side', 'bound', 'clip-len',
        'frame-interval', 'processes', 'threads', 'batch-size'], 0),
    ('finetune', ['minutes', 'timeout', 'lr', 'batch-size', 'lora'], 0),
    ('finetune', ['workers'], -1), ('targets', ['rate'], 0)])
def test_rejects_numbers_out_of_range(run_main, capsys, command, options,
                                      value):
    for option in options:
        with pytest.raises(SystemExit):
            run_main(command, f'--{option}={value}')
        assert re.search(f'argument --{option}: must be .*got {value}',
                         capsys.readouterr().err)
