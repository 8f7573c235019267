# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmvidattn.live.health import BOUNDS, Latency


def test_bins_include_their_upper_bound():
    latency = Latency()
    for bound in BOUNDS:
        latency.add({'total': bound})
        latency.add({'total': 1.001 * bound})
    assert latency.counts['total'] == [
        1, *[2] * (len(BOUNDS) - 1), 1]
