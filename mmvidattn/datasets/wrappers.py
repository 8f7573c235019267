# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

Found = TypeVar('Found')


def find_within(dataset: Any,
                pick: Callable[[Any], Found | None]) -> Iterator[Found]:
    """Find things in a dataset, or in a wrapper of one or more.

    Args:
        dataset: The outermost.
        pick: Takes a dataset, and returns what is wanted of it, or None.
            Within one that has it nothing more is looked for.
    """
    found = pick(dataset)
    if found is not None:
        yield found
        return
    inner = getattr(dataset, 'datasets', None)
    if inner is None:
        inner = [getattr(dataset, 'dataset', None)]
    for one in inner:
        if one is not None:
            yield from find_within(one, pick)
