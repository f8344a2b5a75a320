"""Calls of elementwise ops and losses."""

from shape_cases import (
    BF16,
    BOOL,
    DTYPES,
    F32,
    F64,
    FLOATS,
    I32,
    I64,
    SHAPES,
    U8,
    Index,
    T,
    call,
    operands,
    product,
    sample,
)

SCALARS = (2, 2.5, True)


def unary(op):
    return [call(T(s, d)) for d in DTYPES for s in ((), (3,), (2, 0), (2, 3, 4))]


def binary(op):
    pairs = [call(a, b) for a, b in product(operands(), operands())]
    shapes = [call(T(a), T(b)) for a, b in product(SHAPES, SHAPES)]
    return sample(op, pairs, 250) + shapes


def tensor_scalar(op):
    return [call(a, s) for a, s in product(operands(), SCALARS)]


def scalar_tensor(op):
    return [call(s, a) for a, s in product(operands(), SCALARS)]


def ternary(op, dtypes=DTYPES):
    triples = product(operands(dtypes), operands(dtypes), operands(dtypes))
    shapes = product(SHAPES[:8], SHAPES[:8], SHAPES[:8])
    return [call(*c) for c in sample(op, triples, 300)] + [
        call(*map(T, c)) for c in sample(op, shapes, 200)
    ]


def where(op):
    cases = [
        call(T((2, 3), BOOL), a, b)
        for a, b in sample(op, product(operands(), operands()), 200)
    ]
    cases += [
        call(T(c, BOOL), T(a), T(b))
        for c, a, b in sample(op, product(SHAPES, SHAPES, SHAPES), 200)
    ]
    return cases + [
        call(T((), BOOL), T((), I64, True), T((), F64, True)),
        call(T((2,), BOOL), T((), I64, True), T((), F32)),
    ]


def masked_fill(op):
    values = (2.5, 3) if op.endswith("Scalar") else (T(()), T((1,)), T((), I64))
    return [
        call(T(a, d), T(m, BOOL), v)
        for a, m, d, v in sample(op, product(SHAPES, SHAPES, (F32, I64), values), 200)
    ] + [call(T((3,)), T((3,), U8), values[0])]


def clamp(op):
    bounds = (None, 0, 1.5, True)
    return [call(a, lo, hi) for a, lo, hi in product(operands(), bounds, bounds)]


def clamp_tensor(op):
    bounds = [None] + operands((F32, F64, I64, U8))
    tensors = [T(s, d) for s in ((2, 3), (3,), ()) for d in (F32, I64, BF16)]
    cases = product(tensors, bounds, bounds)
    return [call(*c) for c in sample(op, cases, 250)] + [
        call(T((2, 3)), T((2, 1)), T((4,))),
        call(T((2, 3)), None, T((5, 1, 1))),
    ]


def lerp(op):
    weights = (
        (0.5, 1)
        if op.endswith("Scalar")
        else [T(()), T((2, 3)), T((3,), F64), T((), F64, True), T((4,))]
    )
    cases = product(operands(FLOATS), operands(FLOATS), weights)
    return [call(*c) for c in sample(op, cases, 250)]


def addcmul(op):
    return [call(*c.args, value=v) for c in ternary(op) for v in (1, 0.5)]


def backward(op, *rest):
    """Calls with grad_output, with self or the result, and with the arguments `rest`."""
    pairs = [
        (T(a, d), T(b, d)) for a, b in product(SHAPES, SHAPES) for d in (F32, BF16)
    ]
    pairs += [(T((2, 3), a), T((2, 3), b)) for a, b in product(FLOATS, FLOATS)]
    return [call(g, s, *rest) for g, s in sample(op, pairs, 120)]


def elu_backward(op):
    return [
        call(c.args[0], 1, 1, 1, flag, c.args[1])
        for c in backward(op)
        for flag in (True, False)
    ]


def to_copy(op):
    return [
        call(T(s, d), dtype=to)
        for s in SHAPES[:4]
        for d in DTYPES
        for to in DTYPES + (None,)
    ]


def glu(op):
    return [
        call(T(s, F32), dim)
        for s in ((), (4,), (3,), (2, 4), (0, 2), (2, 3, 6))
        for dim in (-1, 0, 1, 2, -3)
    ]


def glu_backward(op):
    return [
        call(T(g), T(s), dim)
        for s, g in (((4,), (2,)), ((2, 4), (2, 2)), ((4, 2), (2, 2)))
        for dim in (-1, 0, 1)
    ] + [call(T((2,)), T((5,)), 0)]


def copy(op):
    return [
        call(T(a, d), T(b, e))
        for a, b in product(SHAPES, SHAPES)
        for d, e in ((F32, F32), (F32, I64))
    ]


def prelu(op):
    return [call(T(a, d), T(b, d)) for a, b in product(SHAPES, SHAPES) for d in (F32,)]


def prelu_backward(op):
    return [
        call(T(a), T(a), T(b))
        for a, b in (((2, 3), (1, 3)), ((3,), (1,)), ((2, 3), (1, 4)), ((), ()))
    ]


def log_sigmoid_backward(op):
    return [call(T(s), T(s), T(s)) for s in SHAPES]


def loss(op, *rest):
    cases = [
        call(T(a, d), T(b, d), r, *rest)
        for a, b in product(SHAPES, SHAPES)
        for r in (0, 1, 2)
        for d in (F32, F64)
    ]
    return sample(op, cases, 250)


def loss_backward(op, *rest):
    return [
        call(T(g), T(s), T(s), r, *rest)
        for s in SHAPES
        for r, g in ((0, s), (1, ()), (2, ()))
    ]


def binary_cross_entropy(op):
    # Input and target have equal sizes, because the op itself squeezes its arguments;
    # torch.nn.functional rejects different sizes in Python.
    return [
        call(T(a), T(a), w, r)
        for a in SHAPES
        for w in (None, T((3,)), T((1,)))
        for r in (0, 1, 2)
    ]


def binary_cross_entropy_backward(op):
    return [
        call(T(g), T(s), T(s), w, r)
        for s in SHAPES
        for w in (None, T(s))
        for r, g in ((0, s), (1, ()))
    ]


def bce_with_logits(op):
    return [
        call(T(a), T(b), w, p, r)
        for a, b in (((2, 3), (2, 3)), ((3,), (3,)), ((0,), (0,)), ((), ()))
        for w in (None, T((3,)))
        for p in (None, T((3,)), T((1,)))
        for r in (0, 1, 2)
    ]


def nll(op):
    shapes = (
        ((2, 3), (2,)),
        ((3,), ()),
        ((2, 3), (4,)),
        ((0, 3), (0,)),
        ((2, 3, 4), (2,)),
        ((2, 3), (2, 1)),
        ((3,), (1,)),
        ((3,), (2,)),
        ((), ()),
        ((1, 3), ()),
    )
    return [
        call(T(a, d), Index(b), w, r, -100)
        for a, b in shapes
        for d in (F32, F64)
        for w in (None, T((3,), d), T((2,), d))
        for r in (0, 1, 2)
    ]


def nll_backward(op):
    return [
        call(T(g), T((2, 3)), Index(t), w, r, -100, T(()))
        for r, g in ((0, (2,)), (1, ()), (2, ()))
        for w in (None, T((3,)), T((5,)))
        for t in ((2,), (3,))
    ] + [call(T(()), T((3,)), Index(()), None, 1, -100, T(()))]


def nll2d(op):
    shapes = (
        ((2, 3, 4, 5), (2, 4, 5)),
        ((2, 3, 4, 5), (2, 5, 4)),
        ((2, 3, 4), (2, 4)),
        ((0, 3, 4, 5), (0, 4, 5)),
        ((2, 3, 4, 5), (2,)),
    )
    return [
        call(T(a), Index(b), w, r, -100)
        for a, b in shapes
        for w in (None, T((3,)), T((4,)))
        for r in (0, 1, 2)
    ]


def nll2d_backward(op):
    return [
        call(T(g), T((2, 3, 4, 5)), Index(t), None, r, -100, T(()))
        for r, g in ((0, (2, 4, 5)), (1, ()), (2, ()))
        for t in ((2, 4, 5), (2, 5, 4))
    ]


def ctc_backward(op):
    """Calls with the lengths as tensors; every length is 1."""
    return [
        call(
            *(T((batch,), d), T((time, batch, 3), d), Index((batch, longest))),
            *(T((batch,), I64), T((batch,), I64), T((batch,), d)),
            *(T((batch, time, 2 * longest + 1), d), 0, zero_infinity),
        )
        for time, batch, longest in ((4, 2, 3), (2, 1, 1))
        for d in (F32, F64)
        for zero_infinity in (False, True)
    ]


def fake_quantize(op):
    limits = ((0, 0, 5), (3, 0, 5), (9, 0, 5), (0, 5, 0))
    shapes = [call(T(s), 0.1, *n) for s in ((), (2, 3), (2, 0)) for n in limits]
    return shapes + [call(T((2,), d), 0.1, *limits[0]) for d in DTYPES]


def fake_quantize_tensors(op):
    sizes = ((), (1,), (2,))
    states = [
        call(T((2, 3)), T(s), T(z, I64), T(e), 0, 5)
        for s, z, e in product(sizes, sizes, sizes)
    ]
    one = (T((1,)), T((1,), I64), T((1,)))
    limits = [call(T(s), *one, *n) for s in ((), (2, 0)) for n in ((0, 5), (5, 0))]
    return states + limits + [call(T((2,), d), *one, 0, 5) for d in DTYPES]


def fake_quantize_channels(op):
    numbers = [(3, 3, 1), (2, 2, 0), (3, 2, 1), (2, 2, 1), (3, 3, -1), (3, 3, 2)]
    sizes = [call(T((2, 3)), T((s,)), T((z,), F32), a, 0, 5) for s, z, a in numbers]
    types = [call(T((2,), d), T((2,)), T((2,), F32), 0, 0, 5) for d in DTYPES]
    states = [
        call(T((2,)), T((2,), s), T((2,), z), 0, 0, 5)
        for s, z in product(DTYPES, DTYPES)
    ]
    return sizes + types + states


def fused_fake_quantize(op):
    def of(x, count, *numbers):
        states = (T((count,)), T((count,)), T((count,)), T((count,), I32))
        return call(x, T((1,), I64), T((1,), I64), *states, 0.01, 0, 5, *numbers)

    channels = [of(T((2, 3)), c, a, True) for c, a in ((2, 0), (3, 1), (2, 1), (3, 2))]
    return [of(T((2, 3)), 1, -1), *channels]


GENERATORS = {
    "aten::where.self": where,
    "aten::masked_fill.Scalar": masked_fill,
    "aten::masked_fill.Tensor": masked_fill,
    "aten::clamp": clamp,
    "aten::clamp.Tensor": clamp_tensor,
    "aten::lerp.Scalar": lerp,
    "aten::lerp.Tensor": lerp,
    "aten::addcmul": addcmul,
    "aten::addcdiv": addcmul,
    "aten::_to_copy": to_copy,
    "aten::glu": glu,
    "aten::glu_backward": glu_backward,
    "aten::copy": copy,
    "aten::_prelu_kernel": prelu,
    "aten::_prelu_kernel_backward": prelu_backward,
    "aten::elu_backward": elu_backward,
    "aten::log_sigmoid_backward": log_sigmoid_backward,
    "aten::hardtanh_backward": lambda op: backward(op, -1, 1),
    "aten::leaky_relu_backward": lambda op: backward(op, 0.01, False),
    "aten::softplus_backward": lambda op: backward(op, 1, 20),
    "aten::threshold_backward": lambda op: backward(op, 0),
    "aten::hardshrink_backward": lambda op: backward(op, 0.5),
    "aten::softshrink_backward": lambda op: backward(op, 0.5),
    "aten::threshold": lambda op: [call(*c.args, 1, 2) for c in unary(op)],
    "aten::div.Tensor_mode": lambda op: [
        call(*c.args, rounding_mode=m)
        for c in binary(op)
        for m in (None, "floor", "trunc")
    ],
    "aten::div.Scalar_mode": lambda op: [
        call(*c.args, rounding_mode=m)
        for c in tensor_scalar(op)
        for m in (None, "floor", "trunc")
    ],
    "aten::round.decimals": lambda op: [call(*c.args, decimals=2) for c in unary(op)],
    "aten::fake_quantize_per_tensor_affine_cachemask": fake_quantize,
    "aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams": fake_quantize_tensors,
    "aten::fake_quantize_per_channel_affine_cachemask": fake_quantize_channels,
    "aten::_fused_moving_avg_obs_fq_helper_functional": fused_fake_quantize,
    "aten::mse_loss": loss,
    "aten::soft_margin_loss": loss,
    "aten::smooth_l1_loss": lambda op: loss(op, 1.0),
    "aten::huber_loss": lambda op: loss(op, 1.0),
    "aten::mse_loss_backward": loss_backward,
    "aten::smooth_l1_loss_backward": lambda op: loss_backward(op, 1.0),
    "aten::huber_loss_backward": lambda op: loss_backward(op, 1.0),
    "aten::binary_cross_entropy": binary_cross_entropy,
    "aten::binary_cross_entropy_backward": binary_cross_entropy_backward,
    "aten::binary_cross_entropy_with_logits": bce_with_logits,
    "aten::nll_loss_forward": nll,
    "aten::nll_loss_backward": nll_backward,
    "aten::nll_loss2d_forward": nll2d,
    "aten::nll_loss2d_backward": nll2d_backward,
    "aten::_ctc_loss_backward.Tensor": ctc_backward,
}


def by_signature(op, types):
    """The generator for an op whose required arguments have these types, or None."""
    if op.endswith("_backward"):
        return backward
    return {
        ("Tensor",): unary,
        ("Tensor", "Tensor"): binary,
        ("Tensor", "number"): tensor_scalar,
        ("number", "Tensor"): scalar_tensor,
        ("Tensor", "Tensor", "Tensor"): ternary,
    }.get(tuple(types))
