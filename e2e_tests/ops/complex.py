"""Complex numbers: PyTorch's kernels in the program, or pairs of real numbers."""

from __future__ import annotations

import torch
from ops.program import C64, COMPLEX, F32, F64, WIDE, Row, any_of, nonzero, of

z = any_of(4, 6)
x = of(F32, any_of(4, 6))
wide = of(F64, any_of(4, 6))
pairs = any_of(4, 6, 2)


def _rows(complexes, functions):
    return [Row(name, f, complexes, COMPLEX) for name, f in functions.items()]


ROWS = [
    # Views, and ops that move elements.
    Row("view_as_complex", torch.view_as_complex, (pairs,), WIDE),
    Row("view_as_real", torch.view_as_real, (z,), COMPLEX),
    Row("view-dtype", lambda a: a.view(torch.int32) + 1, (z,), (F32, C64), grad=False),
    Row(
        "view-dtype-narrow", lambda a: a.view(torch.int16), (z,), (F32, F64), grad=False
    ),
    Row("view-dtype-wide", lambda a: a.view(torch.complex64), (z,), (F32,), grad=False),
    *_rows(
        (z,),
        {
            "real": lambda a: a.real * 2,
            "imag": lambda a: a.imag * 2,
            "conj": lambda a: a.conj() * 2,
            "conj-of-conj": lambda a: a.conj().conj() + 1,
            "conj_physical": torch.conj_physical,
            "resolve_conj": lambda a: a.conj().resolve_conj(),
            "imag-of-conj": lambda a: a.conj().imag.exp(),
            "resolve_neg": lambda a: a.conj().imag.resolve_neg(),
            "reshape": lambda a: a.reshape(3, 8) + 1,
            "permute": lambda a: a.permute(1, 0) * 2,
            "t": lambda a: a.t() + a.t(),
            "transpose-contiguous": lambda a: a.transpose(-1, -2).contiguous(),
            "expand": lambda a: a[:, None].expand(4, 3, 6) * 1,
            "unsqueeze": lambda a: a.unsqueeze(-1) + a.unsqueeze(1),
            "squeeze": lambda a: a.unsqueeze(1).squeeze() - 1,
            "select": lambda a: a[1] + a[:, -1].sum(),
            "slice": lambda a: a[1:, ::2] * 3,
            "split": lambda a: torch.cat(a.split(4, 1)[::-1], 1),
            "chunk": lambda a: a.chunk(2)[1] * 2,
            "unbind": lambda a: a.unbind(-1)[2] + 1,
            "stack": lambda a: torch.stack([a, a.conj()], -1),
            "cat": lambda a: torch.cat([a, a * 2], -1),
            "flip": lambda a: a.flip(0, -1),
            "roll": lambda a: a.roll((1, -2), (0, 1)),
            "roll-flat": lambda a: a.roll(3),
            "fftshift": lambda a: torch.fft.fftshift(torch.fft.ifftshift(a, 1)),
            "diagonal": lambda a: a.diagonal() * 1,
            "tril": torch.tril,
            "index": lambda a: a[torch.tensor([2, 0], device=a.device)],
            "index-none": lambda a: a[:, torch.tensor([2, 0], device=a.device)],
            "index_select": lambda a: a.index_select(
                1, torch.tensor([2, 0], device=a.device)
            ),
            "gather": lambda a: a.gather(1, torch.tensor([[1], [0]], device=a.device)),
            "pad": lambda a: torch.nn.functional.pad(a, (1, 2)),
            "repeat": lambda a: a.repeat(2, 1),
            "clone": torch.clone,
            "to": lambda a: a.to(torch.complex128) + 1,
        },
    ),
    # Arithmetic.
    *_rows(
        (z, z),
        {
            "add": lambda a, b: a + b,
            "add-alpha": lambda a, b: torch.add(a, b, alpha=0.5),
            "add-complex-alpha": lambda a, b: torch.add(a, b, alpha=0.5 - 2j),
            "sub-complex-alpha": lambda a, b: torch.sub(a, b, alpha=1j),
            "sub": lambda a, b: a - b,
            "mul": torch.mul,
            "mul-conj": lambda a, b: a * b.conj(),
            "where": lambda a, b: torch.where(a.real > b.real, a, b),
            "addcmul": lambda a, b: torch.addcmul(a, a, b, value=0.5),
            "lerp": lambda a, b: torch.lerp(a, b, 0.3),
            "matmul": lambda a, b: a @ b.mH,
            "bmm": lambda a, b: torch.bmm(a[None], b.mT[None]),
            "addmm": lambda a, b: torch.addmm(a[:, :4], a, b.t()),
            "mv": lambda a, b: a @ b[0],
            "einsum": lambda a, b: torch.einsum("ij,kj->ik", a, b),
            "dot": lambda a, b: torch.dot(a[0], b[1]),
            "vdot": lambda a, b: torch.vdot(a[0], b[1]),
            "eq": lambda a, b: torch.eq(a, b),
            "baddbmm": lambda a, b: torch.baddbmm(a[None, :, :4], a[None], b.mT[None]),
        },
    ),
    Row("div", torch.div, (z, nonzero(4, 6)), COMPLEX),
    *_rows(
        (z,),
        {
            "neg": torch.neg,
            "abs": torch.abs,
            "angle": torch.angle,
            "sgn": torch.sgn,
            "exp": torch.exp,
            "log": torch.log,
            "sqrt": torch.sqrt,
            "sin": torch.sin,
            "cosh": torch.cosh,
            "tanh": torch.tanh,
            "sigmoid": torch.sigmoid,
            "square": torch.square,
            "pow": lambda a: a**3,
            "pow-float": lambda a: a**0.5,
            "reciprocal": torch.reciprocal,
            "isnan": torch.isnan,
            "isfinite": torch.isfinite,
            "scale": lambda a: a * 0.5 + 2,
            "scale-complex": lambda a: a * (0.5 - 2j) + 1j,
            "rsub-complex": lambda a: 1j - a,
            "div-complex": lambda a: a / (1 + 1j),
            "sum": torch.sum,
            "sum-dim": lambda a: a.sum(-1),
            "sum-keepdim": lambda a: a.sum(0, keepdim=True),
            "mean": torch.mean,
            "mean-dim": lambda a: a.mean(1),
            "prod": lambda a: a.prod(1),
            "cumsum": lambda a: a.cumsum(1),
            "norm": lambda a: torch.linalg.norm(a),
            "norm-dim": lambda a: torch.linalg.vector_norm(a, dim=1),
            "var": lambda a: a.var(1),
            "in-place": lambda a: (a * 1).mul_(2).add_(1j).conj_physical_(),
            "fill-real": lambda a: _filled(a),
            "zeros_like": lambda a: torch.zeros_like(a) + a,
            "new_ones": lambda a: a.new_ones(4, 1) * a,
            "is_real": torch.isreal,
        },
    ),
    # Complex and real operands.
    Row("mul-real", torch.mul, (z, x), COMPLEX),
    Row("real-mul", lambda a, b: b * a, (z, x), COMPLEX),
    Row("add-wide", torch.add, (z, wide), COMPLEX),
    Row("div-real", torch.div, (z, of(F32, nonzero(4, 6))), COMPLEX),
    # Eager's gradient of `where` rejects operands of which only one is complex.
    Row(
        "where-real", lambda a, b: torch.where(b > 0, a, b), (z, x), COMPLEX, grad=False
    ),
    Row("cat-real", lambda a, b: torch.cat([a, b]), (z, x), COMPLEX),
    Row("real-times-imaginary", lambda a: a * 1j, (z,), WIDE),
    Row("complex", torch.complex, (z, z), WIDE),
    Row("complex-broadcast", lambda a: torch.complex(a, a[:1]), (z,), WIDE),
    Row("polar", torch.polar, (z, z), WIDE),
    Row("to-complex", lambda a: a.to(torch.complex64) * 2, (z,), WIDE),
    # Fourier transforms.
    Row("rfft", torch.fft.rfft, (z,), WIDE),
    Row("rfft-padded", lambda a: torch.fft.rfft(a, n=9, norm="ortho"), (z,), WIDE),
    Row("rfft2", torch.fft.rfft2, (z,), WIDE),
    Row("rfft-first", lambda a: torch.fft.rfft(a, dim=0), (z,), WIDE),
    Row("irfft", lambda a: torch.fft.irfft(torch.fft.rfft(a) * 2, n=6), (z,), WIDE),
    Row("irfft2", lambda a: torch.fft.irfft2(torch.fft.rfft2(a), s=(4, 6)), (z,), WIDE),
    Row("fft-of-real", torch.fft.fft, (z,), WIDE),
    Row("hfft", torch.fft.hfft, (z,), COMPLEX),
    *_rows(
        (z,),
        {
            "fft": torch.fft.fft,
            "ifft": torch.fft.ifft,
            "fft2": torch.fft.fft2,
            "fftn": torch.fft.fftn,
            "fft-first": lambda a: torch.fft.fft(a, dim=0, norm="forward"),
            "fft-of-transposed": lambda a: torch.fft.fft(a.t()),
        },
    ),
    Row(
        "stft",
        lambda a: torch.stft(
            a.reshape(-1),
            8,
            4,
            window=torch.ones(8, dtype=a.dtype, device=a.device),
            return_complex=True,
        ),
        (z,),
        WIDE,
    ),
    Row(
        "istft",
        lambda a: torch.istft(
            torch.stft(
                a.reshape(-1),
                8,
                2,
                window=torch.ones(8, dtype=a.dtype, device=a.device),
                return_complex=True,
            ),
            8,
            2,
            window=torch.ones(8, dtype=a.dtype, device=a.device),
        ),
        (z,),
        WIDE,
        reason="istft reads whether its window covers all samples",
    ),
]


def _filled(a):
    b = a * 1
    b[1] = 2.0
    b[:, 2] = b[:, 0]
    b.real[0] = 3.0
    b.imag.mul_(2)
    return b
