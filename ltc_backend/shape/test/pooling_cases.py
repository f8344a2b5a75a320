"""Calls of convolutions, pooling and upsampling."""

import torch
from shape_cases import BF16, F32, F64, I64, U8, Index, T, call, product, sample

IMAGES = (
    (2, 3, 8, 9),
    (3, 8, 9),
    (0, 3, 8, 9),
    (2, 0, 8, 9),
    (2, 3, 1, 1),
    (8, 9),
    (2, 3, 0, 9),
)
WINDOWS = [
    (k, s, p)
    for k in ([2, 2], [3], [3, 2], [0, 1], [1, 2, 3])
    for s in ([], [1, 1], [2], [0, 1])
    for p in ([0], [1, 1], [2, 0], [-1])
]


def max_pool(op):
    cases = product(IMAGES, WINDOWS, ([1], [2, 1], [0]), (False, True))
    return [call(T(i, F32), *w, d, c) for i, w, d, c in sample(op, cases, 700)]


def avg_pool(op):
    cases = product(IMAGES, WINDOWS, (False, True), (True, False), (None, 3, 0))
    return [call(T(i, F32), *w, c, n, o) for i, w, c, n, o in sample(op, cases, 700)]


def pooled(shape, kernel, stride, padding, dilation, ceil):
    x = torch.empty(shape, device="meta")
    return tuple(
        torch.nn.functional.max_pool2d(
            x, kernel, stride or None, padding, dilation, ceil
        ).shape
    )


BACKWARD = [
    ((2, 3, 8, 9), [2, 2], [2, 2], [0, 0], [1, 1], False),
    ((3, 8, 9), [3, 3], [2, 2], [1, 1], [1, 1], True),
    ((0, 3, 8, 9), [3, 3], [], [1, 1], [1, 1], False),
]


def max_pool_backward(op):
    cases = []
    for shape, *window in BACKWARD:
        out = pooled(shape, *window)
        for gradient in (out, shape, out[:-1]):
            cases.append(call(T(gradient), T(shape), *window, T(gradient, I64)))
    return cases


def avg_pool_backward(op):
    cases = []
    for shape, kernel, stride, padding, dilation, ceil in BACKWARD:
        out = pooled(shape, kernel, stride, padding, dilation, ceil)
        for gradient in (out, shape, out[:-1]):
            for divisor in (None, 3, 0):
                cases.append(
                    call(
                        T(gradient),
                        T(shape),
                        kernel,
                        stride,
                        padding,
                        ceil,
                        True,
                        divisor,
                    )
                )
    return cases


def adaptive(op):
    # Leaves out negative sizes for empty images: eager returns a result of that size.
    return [
        call(T(i, d), size)
        for i in IMAGES
        for d in (F32, F64)
        for size in ([2, 2], [1, 4], [0, 1], [-1, 2], [1, 2, 3])
        if size[0] >= 0 or 0 not in i
    ]


def adaptive_backward(op):
    # Only valid ranks: PyTorch 2.13's CPU kernel reads out of bounds for others.
    return [
        call(T((*i[:-2], 2, 2), d), T(i, F32)) for i in IMAGES[:3] for d in (F32, F64)
    ]


def fractional_max_backward(op):
    # All indices are 0: eager's kernel doesn't check that they are inside the input.
    cases = []
    for shape in ((2, 3, 4, 5, 6), (3, 4, 5, 6)):
        out = (*shape[:-3], 2, 2, 2)
        for gradient in (out, out[1:]):
            args = (T(gradient), T(shape), [2, 2, 2], [2, 2, 2], Index(out))
            cases.append(call(*args))
    return cases


def adaptive_max_backward(op):
    # Only the two valid ranks, because PyTorch's CPU kernel doesn't reject others.
    return [
        call(T((*i[:-2], 2, 2), d), T(i), Index((*i[:-2], 2, 2)))
        for i in IMAGES[:3]
        for d in (F32, F64)
    ]


def upsample(op):
    return [
        call(T(i, d), size, h, h)
        for i in IMAGES
        for d in (F32, U8)
        for size in ([4, 5], [16, 3], [0, 1], [2])
        for h in (None, 2.0)
    ]


def upsample_backward(op):
    return [
        call(T(g), [4, 5], [2, 3, 8, 9], None, None)
        for g in ((2, 3, 4, 5), (2, 3, 5, 4), (3, 4, 5))
    ] + [call(T((2, 3, 4, 5)), [4, 5], [2, 3, 8], None, None)]


def convolution(op):
    shapes = [
        ((2, 4, 8, 9), (6, 4, 3, 3)),
        ((2, 4, 8, 9), (6, 2, 3, 3)),
        ((2, 4, 8), (6, 4, 3)),
        ((1, 4, 5, 6, 7), (2, 4, 3, 3, 3)),
        ((4, 8, 9), (6, 4, 3, 3)),
        ((2, 3, 8, 9), (6, 4, 3, 3)),
        ((2, 4, 2, 2), (6, 4, 5, 5)),
        ((0, 4, 8, 9), (6, 4, 3, 3)),
        ((2, 4, 8, 9), (4, 1, 1, 2)),
        ((2, 4, 8, 9), (4, 3)),
    ]
    cases = product(
        shapes,
        (None, (6,), (5,), (6, 1)),
        ([1], [2, 1], [0]),
        ([0], [1], [-1], [1, 2]),
        ([1], [2]),
        (False, True),
        ([0], [1]),
        (1, 2, 4),
    )
    calls = [
        call(T(i), T(w), b and T(b), s, p, d, t, o, g)
        for (i, w), b, s, p, d, t, o, g in sample(op, cases, 1500)
    ]
    for dtype, other in ((F64, F64), (BF16, BF16), (F32, F64)):
        calls.append(
            call(
                T((2, 4, 8, 9), dtype),
                T((6, 4, 3, 3), other),
                None,
                [1, 1],
                [0, 0],
                [1, 1],
                False,
                [0, 0],
                1,
            )
        )
    return calls


def convolution_backward(op):
    cases = []
    for shape, weight, out, stride, groups in (
        ((2, 4, 8, 9), (6, 4, 3, 3), (2, 6, 6, 7), [1, 1], 1),
        ((2, 4, 8, 9), (6, 2, 3, 3), (2, 6, 3, 4), [2, 2], 2),
        ((2, 4, 8), (6, 4, 3), (2, 6, 6), [1], 1),
    ):
        zeros, ones = [0] * len(stride), [1] * len(stride)
        for mask in product((True, False), (True, False), (True, False)):
            cases.append(
                call(
                    T(out),
                    T(shape),
                    T(weight),
                    [6],
                    stride,
                    zeros,
                    ones,
                    False,
                    zeros,
                    groups,
                    list(mask),
                )
            )
    return cases


GENERATORS = {
    "aten::max_pool2d_with_indices": max_pool,
    "aten::max_pool2d_with_indices_backward": max_pool_backward,
    "aten::fractional_max_pool3d_backward": fractional_max_backward,
    "aten::avg_pool2d": avg_pool,
    "aten::avg_pool2d_backward": avg_pool_backward,
    "aten::_adaptive_avg_pool2d": adaptive,
    "aten::adaptive_max_pool2d": adaptive,
    "aten::adaptive_max_pool2d_backward": adaptive_max_backward,
    "aten::_adaptive_avg_pool2d_backward": adaptive_backward,
    "aten::upsample_nearest2d": upsample,
    "aten::upsample_nearest2d_backward": upsample_backward,
    "aten::convolution": convolution,
    "aten::convolution_backward": convolution_backward,
}
