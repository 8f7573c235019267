# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from .naive import naive_periodic_shift
from .periodic_shift import FIRST, periodic_shift, plain_shift, token_shift

__all__ = [
    'FIRST', 'naive_periodic_shift', 'periodic_shift', 'plain_shift',
    'token_shift'
]
