# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import math

import pytest

from mmvidattn.online.event_thresholds import Thresholds, read_thresholds

RULES = dict(on=.8, off=.4, smoothing=.5, min_duration=1.)


def test_file_keeps_all_entries(tmp_path):
    path = tmp_path / 'new' / 'thresholds.json'
    tuned = Thresholds(dict(tänzen=RULES), 'f1@50', .75,
                       dict(tänzen=.75), dict(videos=3))
    tuned.write(path)
    assert read_thresholds(path) == tuned
    content = json.loads(path.read_text('utf-8'))
    assert content['classes'] == {'tänzen': RULES}
    assert content['versions']['mmvidattn']
    Thresholds({}, 'f1@50', math.nan, dict(x=math.nan)).write(path)
    assert 'NaN' not in path.read_text('utf-8')
    assert math.isnan(read_thresholds(path).value)
    assert math.isnan(read_thresholds(path).values['x'])


def test_omitted_rules_have_defaults(tmp_path):
    path = tmp_path / 'thresholds.json'
    Thresholds(dict(x=dict(on=.5, off=.2)), 'f1@50', 1.).write(path)
    assert read_thresholds(path).classes == dict(
        x=dict(on=.5, off=.2, smoothing=0., min_duration=.5))


@pytest.mark.parametrize('change, message', [
    (dict(format=2), 'format 2; update'),
    (dict(classes=dict(x=dict(on=2., off=.1))), '0 < off <= on <= 1'),
    (dict(classes=dict(x=dict(on='1', off=.1))), "thresholds of 'x'"),
    (dict(classes=[1]), 'cannot read the thresholds'),
    (dict(value='high'), 'could not convert')])
def test_rejects_damaged_files(tmp_path, change, message):
    path = tmp_path / 'thresholds.json'
    Thresholds(dict(x=RULES), 'f1@50', 1.).write(path)
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, **change}))
    with pytest.raises(ValueError, match=message):
        read_thresholds(path)


def test_rejects_other_files(tmp_path):
    path = tmp_path / 'thresholds.json'
    for text in None, '', '[]', '{"format": 1}', '[' * 9999:
        if text is not None:
            path.write_text(text)
        with pytest.raises(ValueError, match='cannot read the thresholds'):
            read_thresholds(path)
