"""Calls of constructors and of random ops."""

from shape_cases import BF16, BOOL, F32, F64, FLOATS, I32, I64, SHAPES, T, call

SIZES = ([], [3], [2, 0], [4, 1, 2], [-1])
TYPES = (None, F64, I64, BOOL, BF16)


def sizes(op):
    return [call(s, dtype=d) for s in SIZES for d in TYPES]


def floating_sizes(op):
    return [call(s, dtype=d) for s in SIZES for d in (None, F64, BF16)]


def full(op):
    return [call(s, v, dtype=d) for s in SIZES for d in TYPES for v in (1, 2.5, True)]


def scalar(op):
    return [call(v, dtype=d) for v in (1, 2.5, True) for d in TYPES]


def arange(op):
    numbers = {
        "aten::arange": [(e,) for e in (0, 5, 4.5, -1)],
        "aten::arange.start": [(1, 5), (0.5, 4), (3, 3), (4, 1), (2, 7.2)],
        "aten::arange.start_step": [
            (0, 10, 3),
            (10, 0, -3),
            (0, 1, 0.1),
            (0, 5, 0),
            (1, 0, 1),
            (0.5, 3, 1),
            (0, 2**40, 2**38),
            (-3, 4, 2),
            (0, 7, 2.5),
        ],
    }[op]
    return [call(*n, dtype=d) for n in numbers for d in (None, F32, F64, I64, I32)]


def linspace(op):
    return [call(0, 1.5, n, dtype=d) for n in (0, 1, 5, -1) for d in TYPES[:3]]


def eye(op):
    sizes = ((0,), (3,), (-1,)) if op == "aten::eye" else ((2, 3), (0, 3), (2, -1))
    return [call(*s, dtype=d) for s in sizes for d in TYPES]


def new(op):
    return [
        call(T((2,), t), s, *([7] if "full" in op else []), dtype=d)
        for t in (F32, I64)
        for s in SIZES
        for d in TYPES
    ]


def like(op):
    return [
        call(T(s, t), *([7] if "full" in op else []), dtype=d)
        for s in SHAPES
        for t in (F32, I64, BOOL)
        for d in TYPES
    ]


def triangle(op):
    return [
        call(r, c, o)
        for r in (0, 3, 5, -1)
        for c in (0, 4, 2)
        for o in (0, 1, -2, 9, -9)
    ]


def fill(op):
    return [
        call(T(s, d), 2.5 if op.endswith("Scalar") else T(()))
        for s in SHAPES
        for d in (F32, I64)
    ]


def random_like(op, *numbers):
    return [call(T(s, t), *numbers) for s in SHAPES for t in FLOATS]


def random_like_dtype(op, *numbers):
    return [
        call(T(s, t), *numbers, dtype=d)
        for s in SHAPES
        for t in (F32, F64)
        for d in (None, F64, F32)
    ]


def randint(op, *bounds):
    return [call(*bounds, s, dtype=d) for s in SIZES for d in (I64, F32, I32)]


GENERATORS = {
    "aten::full": full,
    "aten::zeros": sizes,
    "aten::_efficientzerotensor": sizes,
    "aten::ones": sizes,
    "aten::empty.memory_format": sizes,
    "aten::scalar_tensor": scalar,
    "aten::arange": arange,
    "aten::arange.start": arange,
    "aten::arange.start_step": arange,
    "aten::linspace": linspace,
    "aten::eye": eye,
    "aten::eye.m": eye,
    "aten::new_full": new,
    "aten::new_zeros": new,
    "aten::new_ones": new,
    "aten::new_empty": new,
    "aten::full_like": like,
    "aten::zeros_like": like,
    "aten::ones_like": like,
    "aten::empty_like": like,
    "aten::tril_indices": triangle,
    "aten::triu_indices": triangle,
    "aten::fill.Scalar": fill,
    "aten::fill.Tensor": fill,
    "aten::bernoulli": random_like,
    "aten::bernoulli.p": lambda op: random_like(op, 0.5),
    "aten::bernoulli_.float": lambda op: random_like(op, 0.5),
    "aten::rand_like": random_like_dtype,
    "aten::randn_like": random_like_dtype,
    "aten::randint_like": lambda op: random_like_dtype(op, 5),
    "aten::randint_like.low_dtype": lambda op: random_like_dtype(op, 2, 5),
    "aten::normal_functional": random_like,
    "aten::uniform": random_like,
    "aten::exponential": random_like,
    "aten::cauchy": random_like,
    "aten::geometric": lambda op: random_like(op, 0.5),
    "aten::log_normal": random_like,
    "aten::rand": floating_sizes,
    "aten::randn": floating_sizes,
    "aten::randint": lambda op: randint(op, 5),
    "aten::randint.low": lambda op: randint(op, 2, 5),
    "aten::randperm": lambda op: [
        call(n, dtype=d) for n in (0, 1, 5, -1) for d in (I64, F32)
    ],
    "aten::random": random_like,
    "aten::random.from": lambda op: random_like(op, 2, 5),
    "aten::random.to": lambda op: random_like(op, 5),
    "aten::native_dropout": lambda op: random_like(op, 0.5, True),
}


def with_generator(make_cases):
    return lambda op: [
        call(*c.args, **dict(c.kwargs), generator=None) for c in make_cases(op)
    ]


GENERATORS |= {
    f"aten::{with_one}": with_generator(GENERATORS[f"aten::{without}"])
    for without, with_one in {
        "rand_like": "rand_like.generator",
        "randn_like": "randn_like.generator",
        "randint_like": "randint_like.generator",
        "randint_like.low_dtype": "randint_like.low_generator_dtype",
        "rand": "rand.generator",
        "randn": "randn.generator",
        "randint": "randint.generator",
        "randint.low": "randint.low_generator",
        "randperm": "randperm.generator",
    }.items()
}
