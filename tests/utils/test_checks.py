# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest

from mmvidattn.utils.checks import check_choice, check_divides, to_pair


def test_choice():
    check_choice('mode', None, ('a', None))
    with pytest.raises(ValueError, match=r"mode must be one of \('a', 'b'\), "
                                         "got 'c'"):
        check_choice('mode', 'c', dict(a=1, b=2))


def test_divides():
    check_divides(num_heads=4, embed_dims=8, sizes=(4, 12))
    for kwargs, message in (
        (dict(num_heads=3, embed_dims=8),
         'embed_dims=8 is not divisible by num_heads=3'),
        (dict(patch=4, size=(8, 6)), r'size=\(8, 6\) is not .* by patch=4')):
        with pytest.raises(ValueError, match=message):
            check_divides(**kwargs)


def test_pair():
    assert to_pair(5) == (5, 5)
    assert to_pair([2, 3]) == (2, 3)
