# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import multiprocessing
import time

import pytest

from mmvidattn.utils.exits import Stopped, one_line_stop


@pytest.mark.parametrize('error, hint, code, line', [
    (KeyboardInterrupt(), '', 130, 'stopped'),
    (KeyboardInterrupt(), lambda: ' after 2 of 3 videos', 130,
     'stopped after 2 of 3 videos'),
    (Stopped(143, 'stopped after epoch 2'), '; the same command continues',
     143, 'stopped after epoch 2; the same command continues')],
    ids=['Ctrl-C', 'function', 'signal'])
def test_prints_one_line(capsys, monkeypatch, error, hint, code, line):
    monkeypatch.setattr('sys.argv', ['/bin/mmvidattn train', 'x'])
    with pytest.raises(SystemExit) as end, one_line_stop(hint):
        raise error
    assert end.value.code == code
    assert capsys.readouterr().err == f'\nmmvidattn train: {line}\n'


def test_ends_workers():
    worker = multiprocessing.get_context('fork').Process(
        target=time.sleep, args=(100, ))
    worker.start()
    with pytest.raises(SystemExit), one_line_stop():
        raise KeyboardInterrupt
    worker.join(10)
    assert worker.exitcode is not None


def test_other_exits_pass():
    with pytest.raises(SystemExit, match='no'), one_line_stop():
        raise SystemExit('no')
    with one_line_stop():
        pass
