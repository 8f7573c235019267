# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import re

from mmvidattn.convert import SOURCES
from mmvidattn.utils.config_folder import config_folder


def test_every_model_of_the_table_has_a_converter():
    page = (config_folder() / 'start_weights.md').read_text('utf-8')
    table = page.partition('| model on the Hub |')[2]
    rows = [line.split(' | ') for line in table.splitlines()
            if line.startswith('| `')]
    names = [row[0] for row in rows]
    assert len(rows) > 15 and len({*names}) == len(names)
    for _, _, size, _, sources in rows:
        assert int(size) > 0
        assert {*re.findall(r'`(\w+)`', sources)} <= {*SOURCES}
