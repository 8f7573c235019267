# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import math

import numpy as np
import pytest

from mmvidattn.utils.checks import (
    check_choice,
    check_count,
    check_divides,
    check_fraction,
    check_natural,
    check_not_negative,
    check_positive,
    check_size,
    to_pair,
)

WRONG = -1, math.nan, math.inf, 'x', None, True, [1]


@pytest.mark.parametrize('check, right, wrong', [
    (check_count, (1, np.int64(7)), (0, 1.5)),
    (check_natural, (0, 1, np.int64(7)), (1.5, )),
    (check_positive, (1, 0.1, np.float32(2)), (0, )),
    (check_not_negative, (0, 0.1), ()),
    (check_fraction, (0, 1, 0.5), (1.1, )),
], ids=lambda x: getattr(x, '__name__', ''))
def test_numbers_out_of_range_are_named(check, right, wrong):
    for value in right:
        check(a=value)
    for value in (*wrong, *WRONG):
        with pytest.raises(ValueError, match='^b must be a .*, got ') as error:
            check(a=right[0], b=value)
        assert str(error.value).endswith(f'got {value!r}')


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
        (dict(patch=4, size=(8, 6)), r'size=\(8, 6\) is not .* by patch=4'),
        (dict(num_heads=0, embed_dims=8), 'num_heads must be a positive')):
        with pytest.raises(ValueError, match=message):
            check_divides(**kwargs)


@pytest.mark.parametrize('size', [(2, 3), (2, 3, 0), 3, (1, 2, 3.5), 'abc'])
def test_size(size):
    check_size(3, a=(1, 2, 3), b=[4, 5, 6])
    with pytest.raises(ValueError, match='a must be 3 positive integers, got'):
        check_size(3, a=size)


def test_pair():
    assert to_pair('a', 5) == (5, 5)
    assert to_pair('a', [2, 3]) == (2, 3)
    for value in (0, (1, ), (1, -1), 2.5, None):
        with pytest.raises(ValueError, match='a must be a positive integer'):
            to_pair('a', value)
