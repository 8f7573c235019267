# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from mmvidattn.finetune import FineTuneOptions
from mmvidattn.finetune.clips import _choose_weights
from mmvidattn.finetune.run import _choose_folder
from mmvidattn.finetune.training import NOTES


@pytest.fixture
def options(tmp_path, monkeypatch):
    """Options of a run on two videos, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    for name in 'a', 'b':
        Path('mine', name).mkdir(parents=True)
        Path('mine', name, '0.mp4').touch()
    return FineTuneOptions(Path('mine'))


def write_notes(out, options, **more):
    Path(out, 'run').mkdir(parents=True)
    Path(out, NOTES).write_text(json.dumps(
        dict(options=options.fixed(), videos=2, **more)))


def test_numbers_the_runs(options):
    first = Path('work_dirs/finetune_mine')
    other = replace(options, seed=1)
    assert _choose_folder(options) == first
    write_notes(first, options)
    # The same options resume the run; different options get a new folder.
    assert _choose_folder(options) == first
    assert _choose_folder(replace(options, workers=9)) == first
    second = first.with_name('finetune_mine_2')
    assert _choose_folder(other) == second
    write_notes(second, other)
    assert _choose_folder(other) == second
    assert _choose_folder(options) == first
    third = first.with_name('finetune_mine_3')
    assert _choose_folder(replace(options, seed=2)) == third
    # Folders of other programs stay untouched.
    Path(third, 'run').mkdir(parents=True)
    Path(first.with_name('finetune_mine_4')).mkdir()
    Path(first.with_name('finetune_mine_4'), NOTES).write_text('{}')
    assert _choose_folder(replace(options, seed=2)).name == 'finetune_mine_5'


def test_new_videos_start_a_new_run_when_the_last_is_complete(options):
    first = Path('work_dirs/finetune_mine')
    write_notes(first, options)
    Path('mine/a/1.mp4').touch()
    # An interrupted run continues with its lists.
    assert _choose_folder(options) == first
    Path(first, NOTES).write_text(json.dumps(
        json.loads(Path(first, NOTES).read_text()) | dict(done=5)))
    assert _choose_folder(options).name == 'finetune_mine_2'
    Path('mine/a/1.mp4').unlink()
    assert _choose_folder(options) == first


def test_given_folder_has_no_number(options):
    given = replace(options, work_dir=Path('here'))
    write_notes('here', replace(options, seed=5))
    assert _choose_folder(given) == Path('here')


def test_auto_weights_come_with_the_package(options, capsys):
    auto = replace(options, weights='auto')
    assert _choose_weights(auto) == 'default'
    assert 'start weights: linear_ff_tiny_motion' in (
        capsys.readouterr().out)
    # The options of a run do not depend on where the package is.
    assert replace(options, weights='default').fixed()['weights'] == 'default'
    other = replace(auto, model='vivit_tiny_motion')
    assert _choose_weights(other) is None
    assert 'starts from random weights' in capsys.readouterr().out


@pytest.mark.parametrize('answer, weights', [
    ('', None), ('mine.pth', Path('mine.pth'))])
def test_asks_for_weights_in_a_terminal(options, monkeypatch, answer,
                                        weights):
    torch.save(dict(x=torch.zeros(1)), 'mine.pth')
    for stream in 'stdin', 'stdout':
        monkeypatch.setattr(f'sys.{stream}.isatty', lambda: True,
                            raising=False)
    monkeypatch.setattr('builtins.input', lambda prompt: answer)
    found = _choose_weights(
        replace(options, weights='auto', model='vivit_tiny_motion'))
    assert found == weights


@pytest.mark.parametrize('more', [dict(lora=2), dict(freeze='backbone')],
                         ids=str)
def test_random_weights_cannot_be_frozen(options, more):
    with pytest.raises(ValueError, match='--freeze and --lora need'):
        _choose_weights(replace(options, weights='none', **more))
