# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The console command, and the programs of tools/ that are doors to it."""
import ast
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import mmvidattn_cli

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = mmvidattn_cli.find_commands()
# There were no programs for them before there was the command.
WITHOUT_DOOR = {'compat', 'doctor'}


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
def test_every_command_tells_its_arguments(run_command, capsys, name):
    try:
        run_command(name, '--help')
    except SystemExit as end:
        assert end.code == 0
        usage = f'usage: mmvidattn {name} [-h]'
    else:
        usage = f'mmvidattn {name} '
    said = capsys.readouterr().out
    assert usage in said
    assert mmvidattn_cli.describe(COMMANDS[name]) in ' '.join(said.split())


@pytest.mark.parametrize('name, hint', [
    ('tarin', 'did you mean train'), ('grad_cam', 'did you mean grad-cam'),
    ('zzz', "'zzz'; mmvidattn --help lists all")])
def test_suggests_the_nearest_name(run_command, name, hint):
    with pytest.raises(SystemExit, match=hint):
        run_command(name)


def test_the_module_is_the_command(tmp_path):
    done = subprocess.run(
        [sys.executable, '-m', 'mmvidattn', 'train', 'none.py'],
        cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == ('mmvidattn train: error: no config file none.py\n')


def test_converts_as_the_door_does(run_command, run_main, tmp_path):
    torch.save({'patch_embed.proj.weight': torch.ones(4, 3, 2, 2),
                'blocks.0.norm2.bias': torch.zeros(4)}, tmp_path / 'src.pth')
    args = 'vit_timm', tmp_path / 'src.pth'
    run_command('convert', *args, tmp_path / 'command.pth')
    run_main('convert.py', *args, tmp_path / 'door.pth')
    ours, doors = (torch.load(tmp_path / f'{name}.pth', weights_only=True)
                   for name in ('command', 'door'))
    assert ours['meta'] == doors['meta']
    for name, value in doors['state_dict'].items():
        assert torch.equal(ours['state_dict'][name], value)


def test_counts_as_the_door_does(run_command, run_main, capsys):
    args = ('linear_ff_tiny_motion', '--cfg-options',
            'model.backbone.num_layers=1')
    run_command('complexity', *args)
    said = capsys.readouterr().out
    run_main('analysis/complexity.py', *args)
    assert said == capsys.readouterr().out and 'GMACs/view' in said


def programs():
    return sorted((ROOT / 'tools').rglob('*.py'))


@pytest.mark.parametrize('path', programs(),
                         ids=lambda path: str(path.relative_to(ROOT)))
def test_programs_leave_the_search_path_alone(path):
    assert 'sys.path' not in path.read_text('utf-8')


def test_every_command_has_a_door():
    doors = {}
    for path in programs():
        tree = ast.parse(path.read_text('utf-8'))
        doors |= {node.module.rpartition('.')[2]: tree for node in tree.body
                  if isinstance(node, ast.ImportFrom)
                  and (node.module or '').startswith('mmvidattn.cli.')
                  and path.stem == node.module.rpartition('.')[2]}
    assert {name.replace('-', '_') for name in COMMANDS} - {
        *doors} == WITHOUT_DOOR
    for name, tree in doors.items():
        # Nothing but a docstring, an import and a call.
        assert len(tree.body) == 3, name
        door, module = (
            ast.get_docstring(ast.parse(text)).splitlines()[0] for text in (
                ast.unparse(tree),
                (ROOT / f'mmvidattn/cli/{name}.py').read_text('utf-8')))
        assert door == module
