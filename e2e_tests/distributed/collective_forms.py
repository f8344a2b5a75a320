"""Runs all forms of collectives, and compares device lazy with the CPU. Each rank of
test_collectives.py calls `compare`."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.distributed as dist

DTYPES = [
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.int64,
    torch.int32,
    torch.int8,
    torch.uint8,
    torch.bool,
]
REDUCTIONS = ["SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"]


def _numbers(device, *sizes, dtype=torch.float32, offset=0):
    """Returns a tensor that differs between ranks, but not between devices."""
    generator = torch.Generator().manual_seed(dist.get_rank() * 100 + offset)
    whole = torch.randint(-4, 5, sizes, generator=generator)
    return whole.abs().to(dtype).to(device)


def _reduced(x, reduction, group, is_async):
    """Reduces `x`. Returns the result, or the error's text."""
    try:
        _wait([dist.all_reduce(x, reduction, group, is_async)])
    except RuntimeError as error:
        return str(error)
    return x


def _all_reduce(device, group, is_async):
    for dtype, name in itertools.product(DTYPES, REDUCTIONS):
        x = _numbers(device, 3, 2, dtype=dtype)
        yield _reduced(x, getattr(dist.ReduceOp, name), group, is_async)


def _without_waiting(device, group, is_async):
    """Readers wait, although the caller drops the Work; eager's readers don't."""
    x = _numbers(device, 3, 2)
    work = dist.all_reduce(x, group=group, async_op=is_async)
    if device == "cpu":
        _wait([work])
    del work
    yield x * 2


def _of_dtypes_that_are_not_sent(device, group, is_async):
    for dtype in (torch.int16, torch.complex64):
        x = _numbers(device, 3, dtype=dtype)
        yield _reduced(x, dist.ReduceOp.SUM, group, is_async)


def _messages_of_dtypes_that_are_not_traced(device, group, is_async):
    size, rank = dist.get_world_size(group), dist.get_rank(group)
    right = dist.get_global_rank(group, (rank + 1) % size)
    left = dist.get_global_rank(group, (rank - 1) % size)
    for dtype in (torch.int16, torch.complex64):
        x, y = (
            _numbers(device, 4, dtype=dtype),
            torch.zeros(4, device=device, dtype=dtype),
        )
        # Each rank sends first: a send that waits for its receiver would never end.
        send = dist.isend(x, right, group)
        dist.recv(y, left, group)
        send.wait()
        yield y
        ops = [
            dist.P2POp(dist.irecv, y, left, group),
            dist.P2POp(dist.isend, x * 2, right, group),
        ]
        _wait(dist.batch_isend_irecv(ops))
        yield y


def _views(device, group, is_async):
    """Reduces two views of a tensor, one of them transposed; yields the whole tensor."""
    whole = _numbers(device, 4, 6)
    works = [
        dist.all_reduce(whole[0], group=group, async_op=is_async),
        dist.all_reduce(whole[1:, 2:4].t(), group=group, async_op=is_async)
        if device == "lazy"  # Gloo requires dense tensors in eager
        else _dense(whole[1:, 2:4], group, is_async),
    ]
    for work in works:
        if work:
            work.wait()
    yield whole
    yield whole.sum() * 2


def _dense(part, group, is_async):
    copy = part.clone()
    work = dist.all_reduce(copy, group=group, async_op=is_async)
    if work:
        work.wait()
    part.copy_(copy)


def _gathers(device, group, is_async):
    size, rank = dist.get_world_size(group), dist.get_rank(group)
    root = dist.get_global_rank(group, size - 1)
    x = _numbers(device, 2, 3)
    parts = [torch.zeros(2, 3, device=device) for _ in range(size)]
    whole = torch.zeros(size * 2, 3, device=device)
    on_root = [torch.zeros(2, 3, device=device) for _ in range(size)]
    works = [
        dist.all_gather(parts, x, group, is_async),
        dist.all_gather_into_tensor(whole, x, group, is_async),
        dist.gather(x, on_root if rank == size - 1 else None, root, group, is_async),
    ]
    _wait(works)
    yield from [*parts, whole, *on_root]


def _scatters(device, group, is_async):
    size, rank = dist.get_world_size(group), dist.get_rank(group)
    root = dist.get_global_rank(group, 0)
    pieces = [_numbers(device, 2, 3, offset=i) for i in range(size)]
    x, listed, part = (torch.zeros(2, 3, device=device) for _ in range(3))
    average = torch.zeros(2, 3, device=device)
    average_op = dist.ReduceOp.AVG
    works = [
        dist.scatter(x, pieces if rank == 0 else None, root, group, is_async),
        dist.reduce_scatter(listed, pieces, group=group, async_op=is_async),
        dist.reduce_scatter_tensor(
            part, torch.cat(pieces), group=group, async_op=is_async
        ),
        dist.reduce_scatter_tensor(
            average, torch.cat(pieces), average_op, group, is_async
        ),
    ]
    _wait(works)
    yield from [x, listed, part, average]


def _to_all(device, group, is_async):
    size, rank = dist.get_world_size(group), dist.get_rank(group)
    even, uneven = (torch.zeros(size * 2, 3, device=device) for _ in range(2))
    pieces = [_numbers(device, 2, offset=i) for i in range(size)]
    received = [torch.zeros(2, device=device) for _ in range(size)]
    sent = _numbers(device, size * 2, 3)
    # If there are more than two ranks, each sends one row more to the next rank, and one
    # less to the previous rank.
    splits = [2] * size
    splits[(rank + 1) % size] += size > 2
    splits[(rank - 1) % size] -= size > 2
    received_splits = [2] * size
    received_splits[(rank - 1) % size] += size > 2
    received_splits[(rank + 1) % size] -= size > 2
    works = [
        dist.all_to_all_single(even, sent, group=group, async_op=is_async),
        dist.all_to_all_single(uneven, sent, received_splits, splits, group, is_async),
        dist.all_to_all(received, pieces, group, is_async),
    ]
    _wait(works)
    yield from [even, uneven, *received]


def _from_one(device, group, is_async):
    size = dist.get_world_size(group)
    root = dist.get_global_rank(group, size - 1)
    x, y = _numbers(device, 5), _numbers(device, 5, offset=1)
    works = [
        dist.broadcast(x, root, group, is_async),
        dist.reduce(y, root, dist.ReduceOp.MAX, group, is_async),
    ]
    _wait(works)
    yield x
    if dist.get_rank(group) == size - 1:
        yield y


def _wait(works):
    for work in works:
        if work is not None:
            work.wait()


def _point_to_point(device, group, is_async):
    size, rank = dist.get_world_size(group), dist.get_rank(group)
    right = dist.get_global_rank(group, (rank + 1) % size)
    left = dist.get_global_rank(group, (rank - 1) % size)
    x, y = _numbers(device, 4), torch.zeros(4, device=device)
    # Each rank receives first: an unintended wait here would never end.
    receive, send = dist.irecv(y, left, group), dist.isend(x, right, group)
    receive.wait()
    send.wait()
    yield y
    ops = [
        dist.P2POp(dist.isend, x * 2, right, group),
        dist.P2POp(dist.irecv, y, left, group),
    ]
    _wait(dist.batch_isend_irecv(ops))
    yield y
    if rank == 0:
        dist.send(x + 1, right, group, tag=3)
    elif rank == 1:
        source = dist.recv(y, None if is_async else left, group, tag=3)
        yield torch.tensor(source)
    yield y


def _empty(device, group, is_async):
    """Runs collectives of tensors without elements, and an all-to-all in which only one
    rank sends rows."""
    size, rank = dist.get_world_size(group), dist.get_rank(group)
    x, y, received, part = (torch.zeros(0, 3, device=device) for _ in range(4))
    parts = [torch.zeros(0, 3, device=device) for _ in range(size)]
    whole = torch.zeros(0, 3, device=device)
    splits = [2 * (rank == 0)] * size
    from_first = torch.zeros(2, 3, device=device)
    works = [
        dist.all_reduce(x, group=group, async_op=is_async),
        dist.broadcast(y, dist.get_global_rank(group, 0), group, is_async),
        dist.all_gather(parts, x, group, is_async),
        dist.all_gather_into_tensor(whole, x, group, is_async),
        dist.reduce_scatter_tensor(part, x, group=group, async_op=is_async),
        dist.all_to_all_single(received, x, group=group, async_op=is_async),
        dist.all_to_all_single(
            from_first,
            _numbers(device, sum(splits), 3),
            [2] + [0] * (size - 1),
            splits,
            group,
            is_async,
        ),
    ]
    _wait(works)
    yield from [x, y, *parts, whole, part, received, from_first]


def _coalesced(device, group, is_async):
    tensors = [_numbers(device, 3), _numbers(device, 2, 2, offset=1)]
    size = dist.get_world_size(group)
    with pytest.warns(FutureWarning):
        work = dist.all_reduce_coalesced(tensors, group=group, async_op=is_async)
    _wait([work])
    yield from tensors
    lists = [[torch.zeros_like(t) for t in tensors] for _ in range(size)]
    with pytest.warns(FutureWarning):
        work = dist.all_gather_coalesced(lists, tensors, group, is_async)
    _wait([work])
    yield from itertools.chain.from_iterable(lists)


def _objects(device, group, is_async):
    size = dist.get_world_size(group)
    gathered = [None] * size
    x = _numbers(device, 3)
    dist.all_reduce(x, group=group)  # pending while the objects are sent
    dist.all_gather_object(gathered, {"rank": dist.get_rank(group)}, group)
    dist.barrier(group)
    dist.monitored_barrier(group)
    yield torch.tensor([each["rank"] for each in gathered])
    yield x


def _not_read(device, group, is_async):
    """Runs two equal collectives whose results aren't used, then one whose result is."""
    x = _numbers(device, 3)
    for _ in range(2):
        _wait([dist.all_reduce(x.clone(), group=group, async_op=is_async)])
    _wait([dist.all_reduce(x, group=group, async_op=is_async)])
    yield x


def _sparse(device, group, is_async):
    rank = dist.get_rank()
    x = torch.sparse_coo_tensor(
        torch.tensor([[rank, 4]], device=device), _numbers(device, 2), (5,)
    )
    _wait([dist.all_reduce(x, group=group, async_op=is_async)])
    yield x.to_dense()


def _errors(device, group, is_async):
    size = dist.get_world_size(group)
    x = torch.ones(2, device=device)
    calls = [
        lambda: dist.all_gather([torch.zeros(3, device=device)] * size, x, group),
        lambda: dist.all_gather([x] * (size + 1), x, group),
        lambda: dist.all_reduce(x, dist._make_nccl_premul_sum(2.0), group),
    ]
    for call in calls:
        with pytest.raises((RuntimeError, ValueError)) as error:
            call()
        yield str(error.value)


FORMS = [
    _all_reduce,
    _without_waiting,
    _of_dtypes_that_are_not_sent,
    _messages_of_dtypes_that_are_not_traced,
    _views,
    _gathers,
    _scatters,
    _to_all,
    _from_one,
    _point_to_point,
    _empty,
    _coalesced,
    _objects,
    _not_read,
    _sparse,
    _errors,
]
#: Forms in which some collectives need a cut.
CUT = {
    _of_dtypes_that_are_not_sent,
    _messages_of_dtypes_that_are_not_traced,
    _all_reduce,
    _objects,
    _sparse,
    _errors,
}


def compare(rank: int, split: bool, options: dict) -> None:
    import torch_ltc
    from counting import counting

    for name, value in options.items():
        setattr(torch_ltc.config, name, value)
    group = dist.group.WORLD
    if split:
        half = dist.get_world_size() // 2
        groups = [dist.new_group(range(half)), dist.new_group(range(half, 2 * half))]
        group = groups[rank // half]
    for form, is_async in itertools.product(FORMS, (False, True)):
        expected = list(form("cpu", group, is_async))
        with counting() as counts:
            traced = list(form("lazy", group, is_async))
        place = f"{form.__name__}, async {is_async}, rank {rank}"
        if form not in CUT and form is not _point_to_point:
            assert counts.executions == 0, f"{place}: {torch_ltc.syncs()}"
            assert counts.fallback_calls == 0, f"{place}: {torch_ltc.fallbacks()}"
        torch_ltc.mark_step()
        assert len(traced) == len(expected), place
        for ours, eager in zip(traced, expected, strict=True):
            if isinstance(eager, str):
                assert ours == eager, f"{place}: {ours} {eager}"
                continue
            assert ours.dtype == eager.dtype, place
            assert ours.cpu().equal(eager), f"{place}: {ours} {eager}"


def drop_works(rank: int) -> None:
    import psutil

    x = torch.ones(200_000, device="lazy")
    y, answer = torch.zeros_like(x), torch.zeros(1, device="lazy")
    sizes = []
    for i in range(300):
        if rank == 0:
            dist.isend(x, 1)
            dist.recv(answer, 1)
            answer.cpu()
        else:
            dist.recv(y, 0)
            assert y.sum().item() == 200_000
            dist.send(answer, 0)
        if i in (150, 299):
            sizes.append(psutil.Process().memory_info().rss)
    grown = (sizes[1] - sizes[0]) / x.nbytes
    assert grown < 75, f"149 messages: {grown:.0f} copies"
