"""A tensor that an op creates on a device other than its operand's behaves like eager's."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch_ltc

LIKE: dict[str, Callable[[torch.Tensor, str], torch.Tensor]] = {
    "new_empty": lambda x, d: x.new_empty(2, 5, device=d),
    "new_empty_strided": lambda x, d: x.new_empty_strided((2, 5), (1, 2), device=d),
    "new_zeros": lambda x, d: x.new_zeros(2, 5, device=d),
    "new_ones": lambda x, d: x.new_ones(2, 5, dtype=torch.int64, device=d),
    "new_full": lambda x, d: x.new_full((2, 5), 3.5, device=d),
    "new_tensor": lambda x, d: x.new_tensor([1.0, 2.0], device=d),
    "empty_like": lambda x, d: torch.empty_like(x, device=d),
    "zeros_like": lambda x, d: torch.zeros_like(x, device=d),
    "ones_like": lambda x, d: torch.ones_like(x, device=d),
    "full_like": lambda x, d: torch.full_like(x, 2.5, device=d),
    "rand_like": lambda x, d: torch.rand_like(x, device=d),
    "randn_like": lambda x, d: torch.randn_like(x, device=d),
    "randint_like": lambda x, d: torch.randint_like(x, 9, device=d),
    "randn_like, generator": lambda x, d: torch.randn_like(
        x, device=d, generator=torch.Generator().manual_seed(3)
    ),
}


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("name", LIKE)
def test_like_a_lazy_tensor(name, device):
    made = {}
    for source in ("cpu", "lazy"):
        torch.manual_seed(5)
        x = torch.zeros(3, 4).t().to(source)
        made[source] = LIKE[name](x, device)
    ours, eager = made["lazy"], made["cpu"]
    assert ours.device == eager.device
    assert ours.dtype == eager.dtype
    assert (ours.shape, ours.stride()) == (eager.shape, eager.stride())
    assert torch._C._dispatch_keys(ours) == torch._C._dispatch_keys(eager)
    if device == "cpu":
        assert ours.untyped_storage().data_ptr() == ours.data_ptr()
        if "empty" not in name:
            assert ours.equal(eager)
        ours.fill_(3)
        assert (ours.numpy() == 3).all()


#: Functions of a tensor and a condition: a CPU tensor of rank 0 and dtype bool.
CONDITIONS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "where": lambda x, c: torch.where(c, x, x + 1),
    "mask": lambda x, c: x.masked_fill(c, 3),
    "mask of tensors": lambda x, c: x.masked_fill(c, x[0]),
    "summand": lambda x, c: x + c,
    "factor": lambda x, c: torch.addcmul(x, c, x),
    "bits": lambda x, c: (x > 1) ^ c,
}


@pytest.mark.parametrize("tier", ["compile", "interpret"])
@pytest.mark.parametrize("condition", [True, False])
@pytest.mark.parametrize("name", CONDITIONS)
def test_bools_on_the_cpu(name: str, condition: bool, tier: str) -> None:
    x, c = torch.tensor([1.0, 2.0, 3.0]), torch.tensor(condition)
    with torch_ltc.config(tier=tier):
        result = CONDITIONS[name](x.to("lazy"), c).cpu()
    expected = CONDITIONS[name](x, c)
    assert result.dtype == expected.dtype
    assert torch.equal(result, expected)


@pytest.mark.parametrize(
    "write",
    [
        lambda cpu, i: cpu.__setitem__((i, i), 1.0),
        lambda cpu, i: cpu.__setitem__((..., i, i), torch.ones(2)),
        lambda cpu, i: cpu.index_fill_(0, i, 1.0),
        lambda cpu, i: cpu.add_(i[0].expand(3, 3)),
        lambda cpu, i: torch._foreach_add_([cpu], [i[0].expand(3, 3)]),
        lambda cpu, i: torch._foreach_lerp_([cpu], [i[0].expand(3, 3)], 0.5),
    ],
)
def test_a_cpu_tensor_is_not_written_from_lazy_tensors(write) -> None:
    cpu, indices = torch.zeros(3, 3), torch.tensor([0, 1], device="lazy")
    with pytest.raises(RuntimeError, match="can't write a tensor on 'cpu'"):
        write(cpu, indices)
    assert not cpu.any()


FILLS = {
    "fill_": lambda cpu, value: cpu.fill_(value),
    "row": lambda cpu, value: cpu.__setitem__(1, value),
    "slice": lambda cpu, value: cpu.__setitem__((slice(1, 3), 0), value),
    "mask": lambda cpu, value: cpu.__setitem__(torch.eye(3).bool(), value),
    "list": lambda cpu, value: cpu.__setitem__([0, 2], value),
    "index_fill_": lambda cpu, value: cpu.index_fill_(0, torch.tensor([1]), value),
    "index_put_": lambda cpu, value: cpu.index_put_((torch.tensor([1, 2]),), value),
    "view": lambda cpu, value: cpu[1].fill_(value),
}


#: Functions that write the matrix o from the CPU matrix a.
WRITES_FROM_CPU: dict[str, Callable[[torch.Tensor, torch.Tensor], object]] = {
    "cholesky_inverse": lambda a, o: torch.cholesky_inverse(a, out=o),
    "cholesky_solve": lambda a, o: torch.cholesky_solve(a, a, out=o),
    "qr": lambda a, o: torch.linalg.qr(a, out=(o, o.clone())),
    "solve_triangular": lambda a, o: torch.linalg.solve_triangular(
        a, a, upper=True, out=o
    ),
    "inv": lambda a, o: torch.linalg.inv(a, out=o),
    "mm": lambda a, o: torch.mm(a, a, out=o),
    "exp": lambda a, o: torch.exp(a, out=o),
    "sum": lambda a, o: torch.sum(a, 0, out=o),
    "sort": lambda a, o: torch.sort(a, out=(o, o.long())),
}


@pytest.mark.parametrize("name", WRITES_FROM_CPU)
def test_a_lazy_tensor_is_not_written_from_cpu_tensors(name: str) -> None:
    o = torch.zeros(3, 3, device="lazy")
    with pytest.raises(RuntimeError, match="device"):
        WRITES_FROM_CPU[name](torch.eye(3), o)
    assert (o == 0).all()


@pytest.mark.parametrize("name", FILLS)
def test_a_cpu_tensor_is_filled_with_a_lazy_scalar(name: str) -> None:
    """As with a scalar on CUDA, the value is read: `losses[i] = loss`."""
    found, expected = torch.zeros(3, 3), torch.zeros(3, 3)
    FILLS[name](found, torch.tensor(3.0, device="lazy") * 2)
    FILLS[name](expected, torch.tensor(6.0))
    assert torch.equal(found, expected)


#: Ops on a lazy matrix x, its lazy rows i, and CPU copies of other operands.
MIXED: dict[str, Callable[[torch.Tensor, torch.Tensor], object]] = {
    "index_add_, index": lambda x, i: x.index_add_(0, i.cpu(), x[:2] + 1),
    "index_add_, source": lambda x, i: x.index_add_(0, i, x[:2].cpu()),
    "index_copy_, source": lambda x, i: x.index_copy_(0, i, x[:2].cpu()),
    "index_fill_, index": lambda x, i: x.index_fill_(0, i.cpu(), 2.0),
    "index_reduce_, source": lambda x, i: x.index_reduce_(0, i, x[:2].cpu(), "amax"),
    "index_put_, values": lambda x, i: x.index_put_((i,), x[:2].cpu()),
    "assignment to rows": lambda x, i: x.__setitem__(i, x[:2].cpu()),
    "scatter_add_, source": lambda x, i: x.scatter_add_(0, i[:, None], x[:2, :1].cpu()),
}


@pytest.mark.parametrize("name", MIXED)
def test_operands_on_two_devices_are_rejected(name: str) -> None:
    """The in-place form is as strict as the functional one."""
    x, i = torch.zeros(3, 3, device="lazy"), torch.tensor([0, 1], device="lazy")
    with pytest.raises(RuntimeError, match="tensors to be on the same device"):
        MIXED[name](x, i)
    assert (x == 0).all()


@pytest.mark.parametrize("rows", [[2, 0], [True, False, True]])
def test_positions_of_elements_may_be_on_the_cpu(rows: list[int]) -> None:
    results = {}
    for device in ("cpu", "lazy"):
        x, where = torch.arange(9.0, device=device).view(3, 3), torch.tensor(rows)
        x[where] = x[where] + 1
        x[where] = torch.tensor(5.0)
        x.index_put_((where, torch.tensor(1)), x[:2, 0], accumulate=True)
        results[device] = x.cpu()
    assert torch.equal(results["lazy"], results["cpu"])
