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
    Thresholds(dict(x=dict(on=.5, off=.2)), 'f1@50', math.nan,
               dict(x=math.nan)).write(path)
    assert 'NaN' not in path.read_text('utf-8')
    found = read_thresholds(path)
    assert math.isnan(found.value) and math.isnan(found.values['x'])
    # Omitted rules have defaults.
    assert found.classes == dict(
        x=dict(on=.5, off=.2, smoothing=0., min_duration=.5))


@pytest.mark.parametrize('change, message', [
    (dict(format=2), 'not a file of tune-thresholds, or of a newer'),
    (dict(classes=dict(x=dict(on=2., off=.1))), '0 < off <= on <= 1'),
    (dict(classes=dict(x=dict(on='1', off=.1))), "thresholds of 'x'"),
    (dict(classes=[1]), 'cannot read the thresholds'),
    (dict(value='high'), 'could not convert'),
    *((text, 'cannot read the thresholds') for text in (
        '', '[]', '{"format": 1}', '[' * 9999, None))])
def test_rejects_damaged_and_other_files(tmp_path, change, message):
    path = tmp_path / 'thresholds.json'
    if isinstance(change, dict):
        Thresholds(dict(x=RULES), 'f1@50', 1.).write(path)
        change = json.dumps({**json.loads(path.read_text()), **change})
    if change is not None:
        path.write_text(change)
    with pytest.raises(ValueError, match=message):
        read_thresholds(path)
