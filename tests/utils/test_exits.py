# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import multiprocessing
import os
import sys
import time

import pytest

from mmvidattn.utils.exits import Stopped, one_line_errors, one_line_stop


@pytest.mark.parametrize('error, hint, code, line', [
    (KeyboardInterrupt(), lambda: ' after 2 of 3 videos', 130,
     'stopped after 2 of 3 videos'),
    (Stopped(143, 'stopped after epoch 2'), '; the same command continues',
     143, 'stopped after epoch 2; the same command continues')],
    ids=['Ctrl-C', 'signal'])
def test_prints_one_line_and_ends_workers(capsys, monkeypatch, error, hint,
                                          code, line):
    worker = multiprocessing.get_context('fork').Process(
        target=time.sleep, args=(100, ))
    worker.start()
    monkeypatch.setattr('sys.argv', ['/bin/mmvidattn train', 'x'])
    with pytest.raises(SystemExit) as end, one_line_stop(hint):
        raise error
    assert end.value.code == code
    assert capsys.readouterr().err == f'\nmmvidattn train: {line}\n'
    worker.join(10)
    assert worker.exitcode is not None
    # Other exits pass.
    with pytest.raises(SystemExit, match='no'), one_line_stop():
        raise SystemExit('no')


@pytest.mark.parametrize('is_read, code', [
    (False, 141), (True, 'prog: error: [Errno 32] Broken pipe')])
def test_output_that_nobody_reads_is_no_error(monkeypatch, is_read, code):
    """Errors of other pipes are reported."""
    out, stdout = os.pipe()
    other, broken = os.pipe()
    os.close(other)
    monkeypatch.setattr(sys, 'stdout', open(stdout, 'w'))
    if not is_read:
        os.close(out)
    with pytest.raises(SystemExit) as end, one_line_errors('prog'):
        if is_read:
            os.write(broken, b'x')
        print('x' * 100_000, flush=True)
    assert end.value.code == code
    sys.stdout.close()


@pytest.mark.parametrize('error, text', [
    (ValueError('a\x1b is wrong'), 'a\\x1b is wrong'), (KeyError('k'), 'k'),
    (FileNotFoundError('no file x'), 'no file x'),
    (ImportError('pip install x'), 'pip install x')], ids=repr)
def test_invalid_input_is_one_line(error, text):
    with pytest.raises(SystemExit) as end, one_line_errors('prog'):
        raise error
    assert end.value.code == f'prog: error: {text}'
