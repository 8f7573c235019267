# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import threading
import time

import pytest

from mmvidattn.live.bounded_queue import BoundedQueue


def test_drops_the_oldest_and_counts():
    queue = BoundedQueue(3, drop=True)
    assert all(queue.put(i) for i in range(10))
    queue.close()
    assert list(queue) == [7, 8, 9]
    assert queue.dropped == 7


def test_waits_if_it_must_not_drop():
    queue = BoundedQueue(2, drop=False)
    done = []

    def fill():
        for i in range(20):
            queue.put(i)
            done.append(i)
        queue.close()

    thread = threading.Thread(target=fill)
    thread.start()
    time.sleep(0.1)
    assert done == [0, 1]
    assert list(queue) == list(range(20))
    thread.join()
    assert queue.dropped == 0


def test_error_is_raised_after_waiting_items():
    queue = BoundedQueue(3, drop=False)
    queue.put(1)
    queue.close(ValueError('broken'))
    queue.close()
    results = []
    with pytest.raises(ValueError, match='broken'):
        results += [next(iter(queue))]
        list(queue)
    assert results == [1]


@pytest.mark.parametrize('drop', [True, False], ids=['drop', 'wait'])
def test_closed_queue_refuses_items(drop):
    queue = BoundedQueue(1, drop)
    queue.put(0)
    threading.Timer(0.1, queue.close).start()
    # Closing ends the call that waits.
    assert drop or not queue.put(1)
    queue.close()
    assert not queue.put(2)
    assert list(queue) == [0]


def test_item_put_back_is_taken_next_until_the_queue_is_closed():
    queue = BoundedQueue(3, drop=False)
    queue.put(1)
    queue.put(2)
    items = iter(queue)
    queue.put_back(next(items), 0.)
    assert next(items) == 1
    queue.close()
    queue.put_back(1, 60.)
    assert queue.clear() == 2 and list(queue) == []
