# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import mmvidattn.live
from mmvidattn.apis import OnlineDetector, online


def test_earlier_names_are_those_of_live():
    assert OnlineDetector is mmvidattn.live.OnlineDetector
    for name in mmvidattn.live.__all__:
        assert getattr(online, name) is getattr(mmvidattn.live, name)
