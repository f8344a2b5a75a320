"""The cache of Meta kernels' results is bounded and thread-safe."""

import threading

import _shape_testing
import torch


def test_finds_what_was_inserted():
    cache = _shape_testing.ShapeCache(4)
    assert cache.find(1) is None
    cache.insert(1, [2, 3])
    assert cache.find(1) == [(torch.float32, [2, 3])]
    assert cache.find(2) is None


def test_drops_the_least_recently_used():
    cache = _shape_testing.ShapeCache(3)
    for key in (1, 2, 3):
        cache.insert(key, [key])
    cache.find(1)
    cache.insert(4, [4])
    assert [cache.find(key) is not None for key in (1, 2, 3, 4)] == [
        True,
        False,
        True,
        True,
    ]
    assert len(cache) == 3


def test_replaces_and_clears():
    cache = _shape_testing.ShapeCache(2)
    cache.insert(1, [1])
    cache.insert(1, [7])
    assert len(cache) == 1
    assert cache.find(1) == [(torch.float32, [7])]
    cache.clear()
    assert len(cache) == 0
    assert cache.find(1) is None


def test_holds_nothing_without_capacity():
    cache = _shape_testing.ShapeCache(0)
    cache.insert(1, [1])
    assert len(cache) == 0


def test_many_threads():
    cache = _shape_testing.ShapeCache(64)
    wrong = []

    def work(seed):
        for i in range(3000):
            key = (i * seed) % 100 + 1
            found = cache.find(key)
            if found not in (None, [(torch.float32, [key])]):
                wrong.append(key)
            cache.insert(key, [key])

    threads = [threading.Thread(target=work, args=(s,)) for s in (1, 3, 7, 11)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(cache) == 64
