"""Calls of views, slices, concatenations, repeats and pads."""

from shape_cases import (
    BF16,
    BOOL,
    F32,
    F64,
    FLOATS,
    I64,
    U8,
    T,
    call,
    freeze,
    product,
    sample,
)

SOME = ((), (1,), (3,), (0,), (2, 3), (1, 3), (2, 0), (4, 1, 3), (2, 3, 4, 5))
DIMS = (0, 1, -1, 2, -3)


def view(op):
    sizes = (
        [],
        [1],
        [-1],
        [6],
        [3, 2],
        [2, -1],
        [-1, -1],
        [0],
        [0, -1],
        [-2, 3],
        [1, 3, 1],
        [120],
        [6, -1],
        [2, 3, 4, 5],
    )
    return [call(T(s, d), size) for s in SOME for size in sizes for d in (F32, I64)]


def expand(op):
    sizes = (
        [],
        [1],
        [3],
        [4],
        [2, 3],
        [-1, 3],
        [5, -1, 3],
        [-1, 2, 3],
        [0],
        [4, 7, 3],
        [2, 0],
        [-2],
        [2, -1, -1, -1, -1],
        [6, 2, 3, 4, 5],
    )
    return [call(T(s), size) for s in SOME for size in sizes]


def permute(op):
    dims = (
        [],
        [0],
        [-1],
        [0, 1],
        [1, 0],
        [-1, 0],
        [0, 0],
        [2, 0, 1],
        [3, 1, 2, 0],
        [1],
        [0, 5],
    )
    return [call(T(s), d) for s in SOME for d in dims]


def two_dims(op):
    return [call(T(s), a, b) for s in SOME for a in DIMS for b in DIMS]


def one_dim(op):
    return [call(T(s), a) for s in SOME for a in DIMS + (4, -5)]


def plain(op):
    return [call(T(s, d)) for s in SOME for d in (F32, BOOL)]


def dim_list(op):
    return [
        call(T(s), d)
        for s in SOME
        for d in ([], [0], [0, 1], [1, -1], [0, 0], [-1], [7])
    ]


SELECTED = [(T(s), d, i) for s in SOME for d in DIMS for i in (0, 1, -1, 2, -4)]
SLICED = [
    (T(s), d, a, b, k)
    for s in SOME
    for d in (0, 1, -1, 3)
    for a, b in (
        (None, None),
        (1, None),
        (-2, -1),
        (5, 9),
        (2, 1),
        (0, 2**63 - 1),
        (-9, 2),
    )
    for k in (1, 2, 2**40, 0)
]
DIAGONALS = [
    (T(s), o, a, b)
    for s in SOME
    for o in (0, 1, -1, 4, -4)
    for a, b in ((0, 1), (-1, 0), (0, 0), (1, 2))
]
STRIDED = [
    (T(s), size, stride, o)
    for s in SOME
    for size, stride in (
        ([2], [1]),
        ([2, 2], [2, 1]),
        ([], []),
        ([3], [0]),
        ([2, 3], [1]),
        ([0], [9]),
        ([-1], [1]),
        ([2], [-1]),
    )
    for o in (None, 0, 1, -1)
]


def select(op):
    return [call(*c) for c in SELECTED]


def slices(op):
    return [call(*c) for c in SLICED]


def diagonal(op):
    return [call(*c) for c in DIAGONALS]


def as_strided(op):
    return [call(*c) for c in STRIDED]


def scattered(cases):
    sources = ((), (3,), (2,), (1,), (2, 3), (1, 3), (0,))
    return lambda op: [
        call(c[0], T(s), *c[1:]) for c, s in sample(op, product(cases, sources), 800)
    ]


def unfold(op):
    return [
        call(T(s), d, size, step)
        for s in SOME
        for d in DIMS
        for size in (0, 1, 2, 9, -1)
        for step in (1, 2, 0)
    ]


def cat(op):
    lists = [[T(a), T(b)] for a in SOME for b in SOME]
    lists += [
        [T((2, 3), a), T((1, 3), b), T((0,), c)]
        for a in (F32, I64, BOOL)
        for b in (F64, U8, BF16)
        for c in (F32, F64)
    ]
    lists += [[], [T((0,))], [T((0,)), T((0,))], [T((2, 3))] * 3]
    return [call(freeze(tensors), d) for tensors in lists for d in (0, 1, -1, 2)]


def stack(op):
    lists = [[T(a), T(b)] for a in SOME for b in SOME]
    lists += [[], [T((2,), F32), T((2,), I64)], [T((2, 3))] * 3]
    return [call(freeze(tensors), d) for tensors in lists for d in (0, 1, -1, 2)]


def split(op):
    return [
        call(T(s), n, d) for s in SOME for n in (0, 1, 2, 9, -1) for d in (0, 1, -1)
    ]


def split_with_sizes(op):
    return [
        call(T(s), n, d)
        for s in SOME
        for n in ([], [0], [3], [1, 2], [2, 0], [4, -1], [1, 1])
        for d in (0, 1, -1)
    ]


def repeat(op):
    return [
        call(T(s), r)
        for s in SOME
        for r in ([], [2], [1, 2], [0, 3], [2, 1, 3], [2, 1, 1, 2], [-1, 2])
    ]


def roll(op):
    return [
        call(T(s), n, d)
        for s in SOME
        for n, d in (
            ([1], []),
            ([1], [0]),
            ([1, 2], [0, 1]),
            ([1, 2], [0]),
            ([], []),
            ([1], [5]),
            ([2], [-1]),
        )
    ]


def constant_pad(op):
    return [
        call(T(s), p, 1)
        for s in SOME
        for p in (
            [],
            [1, 2],
            [-1, 0],
            [1],
            [1, 1, 0, 2],
            [-2, -2],
            [0, 0, 0, 0, 1, 1],
            [-1, -2, 0, 0],
        )
    ]


def pad(op):
    numbers = (
        ([1, 1], [0, 2])
        if "1d" in op
        else ([1, 1, 1, 1], [0, 2, 1, 0], [3, 3, 0, 0], [0, 0, -1, 0])
    )
    shapes = SOME + ((2, 3, 4), (0, 3, 4), (0, 3, 4, 5), (2, 0, 4, 5), (3, 4, 0))
    # Leaves out negative padding of empty tensors: eager returns negative sizes.
    return [
        call(T(s, d), p)
        for s in shapes
        for p in numbers + ([-9, 0, 0, 0][: len(numbers[0])],)
        for d in (F32, F64)
        if min(p) >= 0 or 0 not in s
    ]


def pixel_unshuffle(op):
    # Leaves out empty inputs: PyTorch 2.13's CPU kernel returns them unchanged.
    return [c for c in pixel_shuffle(op) if 0 not in c.args[0].shape]


def pixel_shuffle(op):
    return [
        call(T(s), f)
        for s in SOME + ((4, 2, 3), (8, 3, 4), (2, 9, 4, 4), (2, 3, 8, 6), (0, 4, 2, 2))
        for f in (1, 2, 3, 0, -1)
    ]


def triangle(op):
    return [call(T(s, d), k) for s in SOME for d in (F32, BOOL) for k in (0, 1, -9)]


GENERATORS = {
    "aten::view_copy": view,
    "aten::_unsafe_view": view,
    "aten::_reshape_copy": view,
    "aten::expand_copy": expand,
    "aten::permute_copy": permute,
    "aten::transpose_copy.int": two_dims,
    "aten::t_copy": plain,
    "aten::squeeze_copy": plain,
    "aten::unsqueeze_copy": one_dim,
    "aten::squeeze_copy.dim": one_dim,
    "aten::squeeze_copy.dims": dim_list,
    "aten::unbind_copy.int": one_dim,
    "aten::select_copy.int": select,
    "aten::slice_copy.Tensor": slices,
    "aten::diagonal_copy": diagonal,
    "aten::as_strided_copy": as_strided,
    "aten::select_scatter": scattered(SELECTED),
    "aten::slice_scatter": scattered(SLICED),
    "aten::diagonal_scatter": scattered(DIAGONALS),
    "aten::as_strided_scatter": scattered(STRIDED),
    "aten::unfold_copy": unfold,
    "aten::cat": cat,
    "aten::stack": stack,
    "aten::split_copy.Tensor": split,
    "aten::split_with_sizes_copy": split_with_sizes,
    "aten::repeat": repeat,
    "aten::flip": dim_list,
    "aten::roll": roll,
    "aten::constant_pad_nd": constant_pad,
    "aten::reflection_pad1d": pad,
    "aten::replication_pad1d": pad,
    "aten::reflection_pad2d": pad,
    "aten::replication_pad2d": pad,
    "aten::pixel_shuffle": pixel_shuffle,
    "aten::pixel_unshuffle": pixel_unshuffle,
    "aten::tril": triangle,
    "aten::triu": triangle,
    "aten::unfold_backward": lambda op: [
        call(T((2, 2)), [3], 0, 2, 1),
        call(T((2, 1, 2)), [2, 3], 1, 2, 2),
    ],
    "aten::select_backward": lambda op: (
        [call(T((3,), d), [2, 3], 0, 1) for d in FLOATS] + [call(T(()), [3], 0, -1)]
    ),
    "aten::slice_backward": lambda op: [
        call(T((1, 3)), [2, 3], 0, 0, 1, 1),
        call(T((2, 2)), [2, 3], 1, 0, 3, 2),
    ],
    "aten::diagonal_backward": lambda op: [
        call(T((2,)), [2, 3], 0, 0, 1),
        call(T((4, 2)), [2, 3, 4], 0, 0, 1),
    ],
}
