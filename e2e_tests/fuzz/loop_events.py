"""What scripts do between steps with transforms, nested gradients, hooks, writes at moving
places, complex and empty tensors: lines of training loops."""

from __future__ import annotations

import random

#: `{some}` is a parameter, `{at}` a name of its own, `{n}` and `{k}` small numbers.
WRITES = (
    "history[{n}:].mul_(0.9)",
    "history.narrow(0, {n}, 2).add_(total)",
    "history.index_copy_(0, torch.tensor([{n}], device=device), total.reshape(1))",
    "history.index_add_(0, torch.tensor([{n}, {n}, 0], device=device), history[:3], alpha=0.1)",
    "history.as_strided((3,), (2,), {k}).neg_()",
    "history.unfold(0, 2, 2)[{k}].add_(1)",
    "history.scatter_(0, history.argmax().reshape(1), 0.5)",
    "history.masked_fill_(history > total, 0.25)",
    "history += total.expand(6)",
    "recent.copy_(total.expand(2, 2))",
    "recent.t()[{k}] = history[{n}]",
    "torch.mul(history[:3], 0.5, out=history[3:])",
    "torch.cumsum(history.clone(), 0, out=history)",
    "spare{at} = torch.empty(0, dtype=torch.float64, device=device); torch.add(recent, total, out=spare{at}); check('spare', spare{at})",
    "half{at} = history[::2]; half{at}.add_(1); check('half', half{at}); half{at}.mul_(0.5)",
    "history[history.abs() > 1e6] = 0",
)  # fmt: skip
VALUES = (
    "check('spectrum', torch.fft.rfft(history).abs())",
    "check('polar', torch.view_as_real(torch.polar(history.abs(), history.sin())))",
    "check('product', (history * 1j + recent.flatten()[0]).conj().prod().real)",
    "check('mixed', (history > 0).sum() + total.to(torch.float32) * 2)",
    "check('promoted', torch.where(history > 0, 1, total.float()).double())",
    "check('empty', history[6:].sum() + history[:0].prod() + torch.cat([history, history[:0]]).sum())",
    "check('counts', (history > total).cumsum(0) * 3 % 5)",
    "check('order', history.sort(stable=True)[1])",
    "check('matrix', torch.linalg.solve(recent @ recent.t() + 9e3 * torch.eye(2, dtype=recent.dtype, device=device), recent))",
)  # fmt: skip
TRANSFORMS = (
    "check('vmap', torch.func.vmap(lambda row: (row * {some}.detach().flatten()[0]).tanh().sum())(noise({n}, [3, 4], torch.float64)))",
    "check('jvp', torch.func.jvp(lambda w: (w * w).sin().sum(), ({some}.detach(),), (torch.ones_like({some}),))[1])",
    "check('jacrev', torch.func.jacrev(lambda w: (w * 2).cos().flatten()[:3])({some}.detach()))",
    "check('hessian', torch.func.hessian(lambda w: (w.sin() * w).sum())({some}.detach().flatten()[:3]))",
    "check('rows', torch.func.vmap(torch.func.grad(lambda w, x: (w.flatten()[0] * x).sin().sum()), (None, 0))({some}.detach(), history))",
    "check('dual', forward_derivative({some}))",
    "check('second', second_derivative({some}))",
)  # fmt: skip
OF_THE_MODEL = (
    "check('scaled', scaled_call(model, {x}))",
    "penalise(model, {x})",
    "check('checkpointed', checkpointed(model, {x}))",
    "with_packed_saves(model, {x})",
    "hook{at} = model[-1].register_forward_hook(lambda m, i, o: o * 0.9)",
    "hook{at} = model[-1].register_full_backward_hook(lambda m, gi, go: tuple(g if g is None else g * 0.5 for g in gi))",
    "hook{at} = model[-1].register_forward_pre_hook(lambda m, i: (i[0] + 0.1,))",
)  # fmt: skip


def another_event(rng: random.Random, some: str, at: str, x: str | None) -> str:
    groups = [WRITES, VALUES, TRANSFORMS] + ([OF_THE_MODEL] * 2 if x else [])
    text = rng.choice(rng.choice(groups))
    return text.format(some=some, at=at, x=x, n=rng.randrange(5), k=rng.randrange(2))
