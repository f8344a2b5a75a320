"""torch's own ways to functionalize programs work on CPU tensors after lazy tensors and
modes have been used: our kernels at Functionalize don't change them."""

from __future__ import annotations

from subprocesses import run_python

PRELUDE = """
import torch, torch_ltc
from torch.fx.experimental.proxy_tensor import make_fx

(torch.ones(2, device="lazy") + 1).cpu()
torch_ltc._C.pass_functionalization()  # as the first dispatch mode does

def written(x):
    y = torch.zeros(3)
    y[0] = x[0]
    return y

def lazily_written(x):
    y = torch.zeros(3, device="lazy")
    y[0] = x[0]
    return y

def assigned(x):
    y = x.clone()
    y.data = torch.ones(2)
    return y + 0

class Layer(torch.nn.Module):
    def forward(self, x):
        return torch.nn.Linear(2, 2)(x) + written(x)[:2]
"""

PROGRAMS = {
    "aot_eager": "assert torch.compile(written, backend='aot_eager')(torch.ones(2))[0] == 1",
    "torch_ltc": "assert torch.compile(written, backend='torch_ltc')(torch.ones(2))[0] == 1",
    "lazy": """
x = torch.ones(2, device="lazy")
assert torch.compile(lazily_written, backend="aot_eager")(x)[0] == 1
""",
    "functionalize": """
assert make_fx(torch.func.functionalize(written))(torch.ones(2))(torch.ones(2))[0] == 1
""",
    "assigned data": "make_fx(torch.func.functionalize(assigned))(torch.ones(3))",
    "export": "torch.export.export(Layer(), (torch.ones(2),)).run_decompositions()",
    "ops with effects": """
for f in (torch.linalg.cholesky, torch.linalg.inv, lambda x: torch.linalg.solve(x, x)):
    result = torch.compile(f, backend="aot_eager")(torch.eye(2))
    assert torch.equal(result, torch.eye(2))
""",
}


def test_programs() -> None:
    run_python(PRELUDE + "\n".join(PROGRAMS.values()))
