# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import platform

import pytest

from mmvidattn.ops import processor as ops_processor
from mmvidattn.utils import processor


@pytest.mark.parametrize('text, wanted', [
    ('vendor_id\t: A\nmodel name\t: Some CPU @ 2.5GHz: fast\n'
     'model name\t: another\n', 'Some CPU @ 2.5GHz: fast'),
    # As on ARM.
    ('processor\t: 0\nmodel\t\t: 7\n', 'known to Python'),
    (None, 'known to Python'),
], ids=['Linux', 'without a name', 'without a file'])
def test_name(tmp_path, monkeypatch, text, wanted):
    monkeypatch.setattr(ops_processor, 'CPUINFO', tmp_path / 'cpuinfo')
    monkeypatch.setattr(platform, 'processor', lambda: 'known to Python')
    if text is not None:
        (tmp_path / 'cpuinfo').write_text(text)
    assert processor.processor_name() == wanted


def test_kind_where_there_is_no_name(tmp_path, monkeypatch):
    monkeypatch.setattr(ops_processor, 'CPUINFO', tmp_path / 'cpuinfo')
    monkeypatch.setattr(platform, 'processor', lambda: '')
    monkeypatch.setattr(platform, 'machine', lambda: 'x86_64')
    assert processor.processor_name() == 'x86_64'
