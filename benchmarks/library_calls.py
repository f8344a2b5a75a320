"""Compares the speed of the runtime's matrix products and convolutions with PyTorch's.

    python benchmarks/library_calls.py BUILD_DIRECTORY [--threads N] [--filter TEXT]

The runtime and PyTorch run alternately in this process, on the same tensors. A row shows
the minimum time of each in microseconds, the ratio runtime / torch (below 1: the runtime is
faster), and the largest error relative to the largest element. The last lines are geometric
means and maxima of the ratios. With one thread, the times are the thread's CPU time, which
other processes affect little. Build the helper first:
`ninja -C BUILD_DIRECTORY library-calls`.
"""

import argparse
import ctypes
import math
import pathlib
import subprocess
import time

import torch


class RunArguments(ctypes.Structure):
    """LtcRunArguments of torch_ltc-c/runtime.h."""

    _fields_ = [
        ("parameters", ctypes.POINTER(ctypes.c_void_p)),
        ("scalars", ctypes.c_void_p),
        ("outputs", ctypes.POINTER(ctypes.c_void_p)),
        ("num_threads", ctypes.c_int),
        ("caller_clock", ctypes.c_void_p),
        ("command_nanoseconds", ctypes.c_void_p),
        ("command_event", ctypes.c_void_p),
        ("command_event_user_data", ctypes.c_void_p),
        ("command_location", ctypes.c_void_p),
        ("command_location_user_data", ctypes.c_void_p),
        ("parameters_intact", ctypes.c_void_p),
        ("parameter_contents", ctypes.c_void_p),
    ]


def _pointers(tensors):
    pointers = [t.data_ptr() for t in tensors]
    return (ctypes.c_void_p * max(len(pointers), 1))(*pointers)


class Runtime:
    """Calls the runtime through the functions of torch_ltc-c/runtime.h."""

    def __init__(self, build):
        self.helper = build / "bin" / "library-calls"
        self.library = ctypes.CDLL(
            str(build / "torch_ltc" / "lib" / "libltc_runtime.so")
        )
        self.library.ltcExecutableRun.restype = ctypes.c_void_p
        self.library.ltcExecutableLoad.restype = ctypes.c_void_p
        self.library.ltcStatusMessage.restype = ctypes.c_char_p

    def check(self, status):
        if status:
            raise RuntimeError(
                self.library.ltcStatusMessage(ctypes.c_void_p(status)).decode()
            )

    def load(self, words):
        message = subprocess.run(
            [str(self.helper)] + [str(word) for word in words],
            check=True,
            stdout=subprocess.PIPE,
        ).stdout
        executable = ctypes.c_void_p()
        self.check(
            self.library.ltcExecutableLoad(
                message, ctypes.c_size_t(len(message)), ctypes.byref(executable)
            )
        )
        return executable

    def call(self, executable, inputs, outputs, threads):
        """Returns a function that runs the executable on these tensors."""
        arguments = RunArguments(
            parameters=_pointers(inputs),
            outputs=_pointers(outputs),
            num_threads=threads,
        )
        run, pointer = self.library.ltcExecutableRun, ctypes.byref(arguments)

        # The default arguments keep the tensors alive: the runtime only has their
        # addresses.
        def function(inputs=inputs, outputs=outputs):
            status = run(executable, pointer)
            if status:
                self.check(status)

        return function


def least_microseconds(functions, seconds, clock):
    """Calls the functions alternately for `seconds`. Returns each function's minimum time
    in microseconds."""
    samples = [[] for _ in functions]
    for function in functions:
        function()
        function()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(samples[0]) < 5:
        for function, taken in zip(functions, samples):
            start = clock()
            function()
            taken.append(clock() - start)
    return [min(taken) * 1e6 for taken in samples]


MATMULS = [
    # name, batch, m, n, k, transpose_a, transpose_b
    ("perceptron", 1, 128, 512, 784, 0, 1),
    ("perceptron weight", 1, 512, 784, 128, 1, 0),
    ("LeNet fc1", 1, 64, 120, 400, 0, 1),
    ("LeNet fc1 input", 1, 64, 400, 120, 0, 0),
    ("LeNet fc1 weight", 1, 120, 400, 64, 1, 0),
    ("LeNet fc3", 1, 64, 10, 84, 0, 1),
    ("encoder projection", 1, 512, 256, 256, 0, 1),
    ("encoder mlp", 1, 512, 1024, 256, 0, 1),
    ("encoder mlp input", 1, 512, 256, 1024, 0, 0),
    ("encoder mlp weight", 1, 1024, 256, 512, 1, 0),
    ("attention scores", 32, 128, 128, 64, 0, 1),
    ("attention values", 32, 128, 64, 128, 0, 0),
]

SQUARE = [
    (f"square {size}{' a^T' * ta}{' b^T' * tb}", 1, size, size, size, ta, tb)
    for size in (64, 100, 128, 256, 333, 512, 1000, 1024, 2048)
    for ta in (0, 1)
    for tb in (0, 1)
]

CONVOLUTIONS = [
    # name, n, c, h, w, o, k, stride, padding, groups, bias
    ("LeNet conv1", 64, 1, 28, 28, 6, 5, 1, 2, 1, 1),
    ("LeNet conv2", 64, 6, 14, 14, 16, 5, 1, 0, 1, 1),
    ("digits conv 32", 64, 1, 28, 28, 32, 3, 1, 1, 1, 1),
    ("digits conv 64", 64, 32, 14, 14, 64, 3, 1, 1, 1, 1),
    ("ResNet stem", 16, 3, 32, 32, 64, 3, 1, 1, 1, 0),
    ("ResNet 64", 16, 64, 32, 32, 64, 3, 1, 1, 1, 0),
    ("ResNet 64-128 s2", 16, 64, 32, 32, 128, 3, 2, 1, 1, 0),
    ("ResNet 64-128 1x1 s2", 16, 64, 32, 32, 128, 1, 2, 0, 1, 0),
    ("ResNet 128", 16, 128, 16, 16, 128, 3, 1, 1, 1, 0),
    ("ResNet 128-256 s2", 16, 128, 16, 16, 256, 3, 2, 1, 1, 0),
    ("ResNet 256", 16, 256, 8, 8, 256, 3, 1, 1, 1, 0),
    ("ResNet 256-512 1x1 s2", 16, 256, 8, 8, 512, 1, 2, 0, 1, 0),
    ("ResNet 512", 16, 512, 4, 4, 512, 3, 1, 1, 1, 0),
]


def matmul_case(runtime, dtype, sizes, threads):
    batch, m, n, k, ta, tb = sizes
    a = torch.randn(batch, k, m) if ta else torch.randn(batch, m, k)
    b = torch.randn(batch, n, k) if tb else torch.randn(batch, k, n)
    a, b = a.to(dtype), b.to(dtype)
    c, expected = (
        torch.empty(batch, m, n, dtype=dtype),
        torch.empty(batch, m, n, dtype=dtype),
    )
    left, right = a.mT if ta else a, b.mT if tb else b
    words = ["matmul", str(dtype).removeprefix("torch."), batch, m, n, k, ta, tb]
    ours = runtime.call(runtime.load(words), [a, b], [c], threads)

    def theirs():
        if batch == 1:
            torch.mm(left[0], right[0], out=expected[0])
        else:
            torch.bmm(left, right, out=expected)

    return ours, theirs, c, lambda: expected


def convolution_case(runtime, kind, dtype, sizes, threads):
    n, c, h, w, o, k, stride, padding, groups, bias = sizes
    x = torch.randn(n, c, h, w).to(dtype)
    weight = torch.randn(o, c // groups, k, k).to(dtype)
    b = torch.randn(o).to(dtype) if bias else None
    y = torch.nn.functional.conv2d(x, weight, b, stride, padding, 1, groups)
    words = [kind, str(dtype).removeprefix("torch.")] + list(sizes)
    executable = runtime.load(words)
    shape = [stride] * 2, [padding] * 2, [1, 1]
    mask = [
        kind == "backward_input",
        kind == "backward_weight",
        kind == "backward_weight" and bool(bias),
    ]
    result = []

    def theirs():
        if kind == "forward":
            result[:] = [
                torch.nn.functional.conv2d(x, weight, b, stride, padding, 1, groups)
            ]
        else:
            result[:] = torch.ops.aten.convolution_backward(
                y, x, weight, [o] if bias else None, *shape, False, [0, 0], groups, mask
            )

    if kind == "forward":
        inputs, outputs, index = (
            [x, weight] + ([b] if bias else []),
            [torch.empty_like(y)],
            0,
        )
    elif kind == "backward_input":
        inputs, outputs, index = [weight, y], [torch.empty_like(x)], 0
    else:
        inputs, outputs, index = [x, y], [torch.empty_like(weight)], 1
        outputs += [torch.empty(o, dtype=dtype)] if bias else []
    ours = runtime.call(executable, inputs, outputs, threads)
    return ours, theirs, outputs[0], lambda: result[index]


def report(name, options, ours, theirs, out, expected):
    clock = time.thread_time if options.threads == 1 else time.perf_counter
    ours_time, theirs_time = least_microseconds([ours, theirs], options.seconds, clock)
    reference = expected().float()
    error = ((out.float() - reference).abs().max() / reference.abs().max()).item()
    print(
        f"{name:44} {ours_time:10.1f} {theirs_time:10.1f} {ours_time / theirs_time:7.2f} {error:9.1e}",
        flush=True,
    )
    return name, ours_time / theirs_time


def summary(title, ratios):
    if not ratios:
        return
    mean = math.exp(sum(math.log(ratio) for _, ratio in ratios) / len(ratios))
    worst = max(ratios, key=lambda row: row[1])
    print(f"{title}: mean {mean:.2f}, worst {worst[1]:.2f} ({worst[0]})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--dtype", default="float32", choices=["float32", "bfloat16", "float64"]
    )
    parser.add_argument("--filter", default="")
    parser.add_argument("--seconds", type=float, default=0.3)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    dtype = getattr(torch, options.dtype)
    runtime = Runtime(options.build)
    print(f"{'case':44} {'runtime us':>10} {'torch us':>10} {'ratio':>7} {'error':>9}")
    with torch.no_grad():
        products, convolutions = [], []
        for name, *sizes in MATMULS + SQUARE:
            if options.filter in "matmul " + name:
                case = matmul_case(runtime, dtype, sizes, options.threads)
                products.append(report("matmul " + name, options, *case))
        for name, *sizes in CONVOLUTIONS:
            for kind in ("forward", "backward_input", "backward_weight"):
                if options.filter in f"{kind} {name}":
                    case = convolution_case(
                        runtime, kind, dtype, sizes, options.threads
                    )
                    convolutions.append(report(f"{kind} {name}", options, *case))
    summary("matrix products", products)
    summary("convolutions", convolutions)


if __name__ == "__main__":
    main()
