"""Lines that scripts run between the steps of a training loop: transforms, nested
gradients, hooks, writes at changing positions, complex and empty tensors.
"""

from __future__ import annotations

import random

#: `{some}` is a parameter, `{at}` a unique suffix; `{n}` and `{k}` are small integers.
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
#: Lines that change a tensor's sizes, its memory, or the values in its memory.
MEMORY = (
    "history.resize_({n}).resize_(6)",
    "grown{at} = history.clone().resize_(2, 4); grown{at}.view(-1)[6:] = 0; check('grown', grown{at})",
    "set{at} = torch.zeros(3, dtype=torch.float64, device=device).set_(history[{n}:]); set{at}.mul_(0.9); check('set', set{at})",
    "replace_data({some}, 0.9)",
    "swapped{at} = {some}.data; {some}.data = swapped{at} * 0.95; check('swapped', swapped{at})",
    "through_vector(model, 0.98)",
    "torch.nn.init.uniform_({some}, -0.1, 0.1)",
    "{some}.grad = None",
    "{some}.grad = torch.full_like({some}, 0.1) if {some}.requires_grad else None",
    "grad{at} = None if {some}.grad is None else {some}.grad.view(-1)[:2]; model.zero_grad(set_to_none=False); check('grad', total if grad{at} is None else grad{at})",
    "optimizer.param_groups[0]['weight_decay'] = 0.02",
    "kept{at} = history.as_strided((2, 2), (2, 1), {k})",
    "kept{at} = history.unfold(0, 2, 1)[{k}]",
    "kept{at} = history.view(3, 2).t()[{k}]",
    "kept{at} = history.take(torch.tensor({n}, device=device)).reshape(1)",
    "model.to(torch.float64)",
    "model.train(False); model.train(True)",
)  # fmt: skip
VALUES = (
    "check('drawn', drawn_again(lambda: torch.rand(3, dtype=torch.float64).to(device) + history[:3]))",
    "check('noise', torch.randn_like(history) + torch.empty_like(history).uniform_())",
    "check('permutation', history[torch.randperm(6, device=device)])",
    "check('normal', torch.normal(0.0, history.abs() + 1))",
    "check('chosen', torch.multinomial(history.softmax(0), {k} + 1))",
    "check('one hot', F.one_hot((history > 0).long(), 3))",
    "check('top', torch.cat(history.topk(2)))",
    "check('where', torch.stack(torch.where(history > total.abs())))",
    "check('unique', torch.unique(history.round()))",
    "check('quantile', history.quantile(torch.tensor([0.25, 0.5], dtype=torch.float64, device=device)))",
    "check('histogram', torch.histc(history, 4, -2, 2))",
    "check('attended', F.scaled_dot_product_attention(*[history.view(1, 3, 1, 2).transpose(1, 2)] * 3))",
    "check('sampled', F.grid_sample(history.view(1, 1, 2, 3), history[:4].view(1, 1, 2, 2).sin(), 'nearest', align_corners=True))",
    "check('bytes', (history * 3).to(torch.int8).view(torch.uint8))",
    "check('integers', (history * 7).long() // 3 * 2 % 5 << 1)",
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
    "penalize(model, {x})",
    "check('checkpointed', checkpointed(model, {x}))",
    "with_packed_saves(model, {x})",
    "hook{at} = model[-1].register_forward_hook(lambda m, i, o: o * 0.9)",
    "hook{at} = model[-1].register_full_backward_hook(lambda m, gi, go: tuple(g if g is None else g * 0.5 for g in gi))",
    "hook{at} = next(model.parameters()).register_post_accumulate_grad_hook(lambda p: (p.grad.mul_(0.5), None)[1]) if next(model.parameters()).requires_grad else None",
    "check('rows', torch.func.vmap(lambda row: row.double().sum() * total)({x}))",
    "retained{at} = model({x}).square().mean(); retained{at}.backward(retain_graph=True) if retained{at}.requires_grad else None; mark_step(); retained{at}.backward() if retained{at}.requires_grad else None",
    "check('late', evaluate(model, {x}, True).add_(1).view(-1)[:3])",
    "hook{at} = model[-1].register_forward_pre_hook(lambda m, i: (i[0] + 0.1,))",
)  # fmt: skip


def another_event(rng: random.Random, some: str, at: str, x: str | None) -> str:
    groups = [WRITES, VALUES, MEMORY, TRANSFORMS] + ([OF_THE_MODEL] * 2 if x else [])
    text = rng.choice(rng.choice(groups))
    return text.format(some=some, at=at, x=x, n=rng.randrange(5), k=rng.randrange(2))
