"""A buffer is donated only if nothing can read its old value any more."""

from __future__ import annotations

import torch
import torch_ltc


def donated() -> int:
    torch_ltc.wait_device_ops()
    return torch_ltc.step_log()[-1]["donated"]


def updated(keep) -> tuple[int, torch.Tensor, object]:
    p = torch.full((8, 8), 2.0).to("lazy")
    kept = keep(p)
    p.mul_(3)
    torch_ltc.mark_step()
    return donated(), p, kept


def test_in_place_update_overwrites() -> None:
    count, p, _ = updated(lambda p: None)
    assert count == 1
    assert p.cpu().eq(6).all()


def test_a_copy_that_is_still_needed_forbids_it() -> None:
    count, p, kept = updated(lambda p: p.clone())
    assert count == 0
    assert p.cpu().eq(6).all() and kept.cpu().eq(2).all()


def test_a_pending_reader_of_the_old_value() -> None:
    _count, p, kept = updated(lambda p: p @ p)
    assert p.cpu().eq(6).all()
    assert kept.cpu().eq(32).all()


def test_a_partial_sync_never_overwrites() -> None:
    p = torch.full((4, 4), 2.0).to("lazy")
    reader = p @ p
    p.mul_(2)
    torch_ltc.sync([p])
    assert donated() == 0
    assert reader.cpu().eq(16).all() and p.cpu().eq(4).all()


def test_alias_sees_the_new_value() -> None:
    p = torch.ones(4).to("lazy")
    alias, view = p.detach(), p[1:]
    p.add_(1)
    torch_ltc.mark_step()
    assert alias.tolist() == [2] * 4 and view.tolist() == [2] * 3


def test_can_be_switched_off() -> None:
    with torch_ltc.config(donation=False):
        count, p, _ = updated(lambda p: None)
        assert count == 0 and p.cpu().eq(6).all()


def test_a_cpu_copy_survives_the_next_update() -> None:
    p = torch.ones(16).to("lazy")
    copies = []
    for _ in range(5):
        p.add_(1)
        copies.append(p.cpu())
        torch_ltc.mark_step()
    assert [c[0].item() for c in copies] == [2, 3, 4, 5, 6]
