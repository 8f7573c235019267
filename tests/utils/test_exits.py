# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import multiprocessing
import os
import sys
import time

import pytest

from mmvidattn.utils.exits import Stopped, one_line_errors, one_line_stop


@pytest.fixture(autouse=True)
def name(monkeypatch):
    monkeypatch.setattr('sys.argv', ['/bin/mmvidattn train', 'x'])


# mmengine raises this for Ctrl-C while it formats a config.
INTERRUPTED = SyntaxError('Failed to format the config file')
INTERRUPTED.__context__ = KeyboardInterrupt()


@pytest.mark.parametrize('error, hint, code, line', [
    (KeyboardInterrupt(), lambda: ' after 2 of 3 videos', 130,
     'stopped after 2 of 3 videos'),
    (INTERRUPTED, '', 130, 'stopped'),
    (Stopped(143, 'stopped after epoch 2'), '; the same command continues',
     143, 'stopped after epoch 2; the same command continues')],
    ids=['Ctrl-C', 'Ctrl-C in a config', 'signal'])
def test_prints_one_line_and_ends_workers(capsys, monkeypatch, error, hint,
                                          code, line):
    worker = multiprocessing.get_context('fork').Process(
        target=time.sleep, args=(100, ))
    worker.start()
    with pytest.raises(SystemExit) as end, one_line_stop(hint):
        raise error
    assert end.value.code == code
    assert capsys.readouterr().err == f'\nmmvidattn train: {line}\n'
    worker.join(10)
    assert worker.exitcode is not None
    # Without Python's shutdown, but with its exit functions.
    ends = []
    monkeypatch.setattr('os._exit', ends.append)
    monkeypatch.setattr('atexit._run_exitfuncs', lambda: ends.append('done'))
    with pytest.raises(SystemExit), one_line_stop(quick=True):
        raise error
    assert ends == ['done', code]
    # Other exits pass.
    with pytest.raises(SystemExit, match='no'), one_line_stop():
        raise SystemExit('no')


@pytest.mark.parametrize('is_read', [False, True])
def test_output_that_nobody_reads_is_no_error(monkeypatch, is_read):
    """Errors of other pipes are reported."""
    out, stdout = os.pipe()
    monkeypatch.setattr(sys, 'stdout', open(stdout, 'w'))
    if not is_read:
        os.close(out)
    with pytest.raises(SystemExit) as end, one_line_errors():
        if is_read:
            raise BrokenPipeError(32, 'Broken pipe')
        print('x' * 100_000, flush=True)
    assert end.value.code == (
        'mmvidattn train: error: Broken pipe' if is_read else 141)
    sys.stdout.close()


@pytest.mark.parametrize('error, text', [
    (ValueError('a\x1b is wrong'), 'a\\x1b is wrong'), (KeyError('k'), 'k'),
    (KeyError(), ''),
    (FileNotFoundError('no file x'), 'no file x'), (TypeError('t'), 't'),
    (ImportError('pip install x'), 'pip install x'),
    (OSError(21, 'Is a directory', 'a.part', None, 'a'),
     'a is a folder, where a file is expected'),
    (OSError(20, 'Not a directory', 'a/b'),
     'a/b: a file is in the place of a folder'),
    (OSError(28, 'Disk full', 'a'), 'a: Disk full')], ids=repr)
def test_invalid_input_is_one_line(error, text):
    with pytest.raises(SystemExit) as end, one_line_errors():
        raise error
    assert end.value.code == f'mmvidattn train: error: {text}'
