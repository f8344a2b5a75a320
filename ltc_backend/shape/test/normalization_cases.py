"""Calls of normalizations."""

from shape_cases import BF16, BOOL, F32, F64, FLOATS, SHAPES, T, call, product

TYPES = ((F32, F32), (F64, F64), (BF16, BF16), (BF16, F32))
MASKS = list(product((True, False), (True, False), (True, False)))


def layer_norm(op):
    return [
        call(T(s, d), n, w and T(w, p), b and T(b, p), 1e-5)
        for s in ((2, 3), (4, 2, 3), (0, 3), (3,), (), (2, 0))
        for n in ([3], [2, 3], [4], [], [0])
        for d, p in TYPES
        for w, b in ((None, None), (tuple(n), tuple(n)), ((5,), None), (tuple(n), None))
    ]


def layer_norm_backward(op):
    return [
        call(
            T(s, d), T(s, d), n, T(k, d), T(k, d), w and T(w, d), w and T(w, d), list(m)
        )
        for s, n, k in (
            ((2, 3), [3], (2, 1)),
            ((4, 2, 3), [2, 3], (4, 1, 1)),
            ((0, 3), [3], (0, 1)),
        )
        for d in (F32, F64)
        for w in (None, tuple(n))
        for m in MASKS
        if w or 0 not in s
    ]


def rms_norm(op):
    # All shapes are valid, because the composed op doesn't check them;
    # torch.nn.functional does.
    return [
        call(T(s, d), n, w and T(w, p), e)
        for s in ((2, 3), (4, 2, 3), (0, 3), (3,), ())
        for n in ([3], [2, 3])
        for d, p in TYPES[:3]
        for w in (None, tuple(n))
        for e in (None, 1e-5)
        if s[len(s) - len(n) :] == tuple(n)
    ]


def rms_norm_backward(op):
    return [
        call(T(s), T(s), n, T(k), w and T(w), list(m[:2]))
        for s, n, k in (((2, 3), [3], (2, 1)), ((4, 2, 3), [2, 3], (4, 1, 1)))
        for w in (None, tuple(n))
        for m in MASKS
    ]


SHAPES_BN = ((2, 3), (2, 3, 4), (2, 3, 4, 5), (0, 3, 4), (3,))


def batch_norm(op):
    return [
        call(
            T(s, d),
            w and T(w, p),
            w and T(w, p),
            r and T(r, p),
            r and T(r, p),
            training,
            0.1,
            1e-5,
        )
        for s in SHAPES_BN
        for d, p in TYPES
        for w in (None, (3,), (4,))
        for r in (None, (3,), (4,))
        for training in (True, False)
        if not (0 in s and d == BF16)
    ]


def is_sound(call):
    """Whether the parameters' sizes are valid: these ops read out of bounds otherwise."""
    return all(t is None or t.shape == (3,) for t in call.args[1:5])


def batch_norm_legit(op):
    return [c for c in batch_norm(op) if c.args[3] is not None and is_sound(c)]


def batch_norm_inference(op):
    return [
        call(*c.args[:5], *c.args[6:]) for c in batch_norm_legit(op) if not c.args[5]
    ]


def batch_norm_no_stats(op):
    return [call(*c.args[:3], *c.args[5:]) for c in batch_norm(op) if c.args[3] is None]


def batch_norm_backward(op):
    # PyTorch 2.13's CPU kernel divides by the number of elements, so no shape is empty.
    return [
        call(
            T(s, d),
            T(s, d),
            w and T(w, d),
            T((3,), d),
            T((3,), d),
            T((3,), d),
            T((3,), d),
            training,
            1e-5,
            list(m),
        )
        for s in SHAPES_BN[:3]
        for d in (F32, F64)
        for w in (None, (3,))
        for training in (True, False)
        for m in MASKS
    ]


def group_norm(op):
    return [
        call(T(s, d), w and T(w, p), w and T(w, p), n, c, hw, g, 1e-5)
        for s, n, c, hw in (
            ((2, 4, 5), 2, 4, 5),
            ((2, 4), 2, 4, 1),
            ((2, 4, 3, 5), 2, 4, 15),
            ((2, 4, 5), 2, 4, 6),
            ((0, 4, 5), 0, 4, 5),
        )
        for d, p in TYPES
        for w in (None, (4,), (5,))
        for g in (1, 2, 3)
    ]


def group_norm_backward(op):
    return [
        call(
            T(s, d),
            T(s, d),
            T((2, g), d),
            T((2, g), d),
            w and T(w, d),
            2,
            4,
            hw,
            g,
            list(m),
        )
        for s, hw in (((2, 4, 5), 5), ((2, 4), 1))
        for d in (F32, F64)
        for w in (None, (4,))
        for g in (1, 2)
        for m in MASKS
    ]


def dropout_backward(op):
    return [call(T(s, d), T(s, BOOL), 2.0) for s in SHAPES for d in FLOATS]


GENERATORS = {
    "aten::native_layer_norm": layer_norm,
    "aten::native_layer_norm_backward": layer_norm_backward,
    "aten::_fused_rms_norm": rms_norm,
    "aten::_fused_rms_norm_backward": rms_norm_backward,
    "aten::native_batch_norm": batch_norm,
    "aten::_native_batch_norm_legit": batch_norm_legit,
    "aten::_native_batch_norm_legit_no_training": batch_norm_inference,
    "aten::_native_batch_norm_legit.no_stats": batch_norm_no_stats,
    "aten::_native_batch_norm_legit_functional": batch_norm_legit,
    "aten::native_batch_norm_backward": batch_norm_backward,
    "aten::native_group_norm": group_norm,
    "aten::native_group_norm_backward": group_norm_backward,
    "aten::native_dropout_backward": dropout_backward,
}
