"""Programs that once differed from eager, in their shortest form, with the reason."""

from __future__ import annotations

PROGRAMS = {
    # A kernel argument without elements, but with several rows, had no pointer type.
    "cumsum without elements": """
v0 = grid(1, [5, 0], torch.float32)
v1 = aten.cumsum.default(v0, -2)
v2 = aten.logcumsumexp.default(v0, 0)
""",
    # LLVM took the sign from the wrong bit of a bfloat that was read in a loop.
    "sign of a pooled bfloat16": """
v0 = grid(1, [1, 1, 3, 3], torch.bfloat16)
v1, v2 = aten.adaptive_max_pool2d.default(v0, [3, 4])
v3 = aten.signbit.default(v1)
""",
    # The shape rule rejected an input without channels, which eager accepts.
    "pooling of no channels": """
v0 = grid(1, [0, 3, 5], torch.float32)
v1, v2 = aten.adaptive_max_pool2d.default(v0, [1, 3])
""",
    # MLIR folds atan2 of two constant zeros to NaN.
    "atan2 of zeros": """
v0 = aten.zeros.default([4], device=device)
v1 = aten.atan2.default(v0, v0)
""",
    # For integer dtypes, eager converts the bounds to integers first.
    "linspace of int64": """
v0 = aten.linspace.default(0.75, -2, 6, dtype=torch.int64, device=device)
""",
    # torch's functionalization subtracts bools, which raises an error.
    "write to an empty view of an expanded bool": """
v0 = grid(666, [4, 4, 3], torch.bool)
v1 = aten.expand.default(v0, [2, 4, 4, 3])
v2, v3 = aten.split_with_sizes.default(v1, [0, 2], 0)
aten.eq_.Scalar(v2, 0)
""",
    # torch's functionalization fills the gaps with zeros.
    "write to windows with gaps": """
v0 = grid(1, [3], torch.float32)
v1 = aten.unfold.default(v0, 0, 1, 2)
v2 = grid(111, [], torch.bfloat16)
aten.mul_.Tensor(v1, v2)
""",
    # A tensor without elements isn't expanded, even if it has a stride of 0.
    "write to an empty view of stride 0": """
v0 = grid(462, [3, 0, 1], torch.float32)
v1 = aten.squeeze.default(v0)
aten.atan_.default(v1)
""",
    # With eps above one half, the lower bound exceeds the upper one and is checked first.
    "logit of a wide eps": """
v0 = grid(1, [4, 4, 4], torch.float32)
v1 = aten.logit.default(v0, 1.0)
""",
    # lgamma is zero up to a small rounding error, whose square root isn't small.
    "lgamma of one and two": """
v0 = below(4, 426, [3])
v1 = aten.lgamma.default(v0)
aten.sqrt_.default(v1)
""",
    "division of an empty tensor by zero": """
v0 = grid(116, [7, 3, 0], torch.int64)
aten.floor_divide_.Scalar(v0, 0)
""",
    # Eager's result is dense even if the operand has gaps.
    "index_fill of a diagonal": """
v0 = grid(65, [3, 5, 4, 4], torch.float32)
v1, v2 = aten.split_with_sizes.default(v0, [2, 2], -1)
v3 = aten.diagonal.default(v1, -2, 2, 3)
v4 = below(5, 560, [1])
v5 = aten.index_fill.int_Scalar(v3, -2, v4, 1)
v6 = aten.view.default(v5, [6, 5, 1])
""",
    # Eager's result is row-major, so random numbers are generated in that order.
    "power of a transposed exponent": """
v0 = grid(62, [7, 2], torch.bool)
v1 = aten.transpose.int(v0, 1, 0)
v2 = aten.pow.Scalar(0.5, v1)
aten.cauchy_.default(v2, 0.25, 0.5)
""",
    # Eager checks the layout of the input first, then that of the gradient.
    "strides of a threshold's gradient": """
v0 = grid(216, [3, 3], torch.float32)
v1 = aten.permute.default(v0, [1, 0])
v2 = grid(794, [3, 3], torch.float32)
v3 = aten.threshold_backward.default(v1, v2, 0.5)
v4 = aten.leaky_relu_backward.default(v1, v2, 0.1, False)
v5 = aten.as_strided.default(v3, [9], [1])
v6 = aten.as_strided.default(v4, [9], [1])
""",
    # Eager's result is row-major, whatever the operand's strides.
    "strides of log_sigmoid": """
v0 = grid(1, [2, 3], torch.float32)
v1 = aten.permute.default(v0, [1, 0])
v2, v3 = aten.log_sigmoid_forward.default(v1)
v4 = aten.as_strided.default(v2, [6], [1])
""",
    # The variance of an empty tensor is NaN, whatever the correction.
    "variance of nothing": """
v0 = grid(1, [0], torch.float32)
v1 = aten.var.correction(v0, None, correction=-1.5, keepdim=False)
""",
    # On devices other than the CPU, autograd replays a view whose base has a history; it
    # rejects the replay for bool.
    "comparison with a tensor that requires a gradient, into a view": """
v0 = grid(1, [1, 3], torch.bool)
v1 = aten.unsqueeze.default(v0, 2)
v2 = grid(99, [], torch.float64).requires_grad_()
aten.eq_.Tensor(v1, v2)
""",
    # torch's functionalization sums the values that several windows contain for one
    # element.
    "write to one of overlapping windows": """
v0 = order(170, [7, 5], torch.int32)
v1 = aten.unfold.default(v0, -2, 4, 1)
v2, v3, v4, v5 = aten.unbind.int(v1, -3)
v6 = below(4, 449, [5, 4])
aten.bitwise_right_shift_.Tensor(v4, v6)
""",
    # Terms below the smallest float16 number are rounded to zero or to that number.
    "sum of terms that float16 rounds off": """
v0 = grid(1, [3, 3, 4, 1], torch.int64)
v1 = below(3, 221, [1, 3])
v2 = below(3, 491, [1, 3])
v3 = below(4, 366, [1, 1])
v4 = aten.index.Tensor(v0, [v1, v2, v3])
v5 = aten.sinc.default(v4)
v6 = aten.sum.dim_IntList(v5, None, False, dtype=torch.float16)
""",
    # The op's name starts with `copy`, the name of an op that preserves strides.
    "a draw into the copysign of an overlapping view": """
v0 = grid(596, [3], torch.float32).requires_grad_()
v1 = aten.as_strided.default(v0, [3, 1, 2], [0, 1, 1])
v2 = aten.copysign.Scalar(v1, 0.75)
aten.uniform_.default(v2, 0.0, 1.0)
""",
    "strides of roll": """
v0 = grid(61, [3, 5, 4, 4], torch.bfloat16)
v1 = aten.diagonal.default(v0, 2, 2, 1)
v2 = aten.fmod.Scalar(v1, 0.5)
v3 = aten.roll.default(v2, [3], [0])
v4 = aten._unsafe_view.default(v3, [18, -1])
""",
    # Eager passes the gradient to TensorIterator as the last operand.
    "strides of the gradient of prelu": """
v0 = below(4, 402, [5, 2, 3])
v1 = aten.unfold.default(v0, 1, 2, 1)
v2 = aten.copysign.Scalar(v1, -0.25)
v3 = grid(499, [5, 1, 3, 2], torch.float32)
v4 = noise(186, [5, 1, 3, 2], torch.float32)
v5, v6 = aten._prelu_kernel_backward.default(v2, v3, v4)
v7 = aten.view.default(v5, [-1, 2, 3])
""",
    # The normalized rows are zero, up to the rounding of the mean.
    "batch norm of equal rows": """
v0 = grid(1, [1, 2], torch.float32)
v1 = aten.expand.default(v0, [3, -1])
v2 = grid(803, [2], torch.float32).requires_grad_()
v3, v4, v5 = aten.native_batch_norm.default(v1, v2, None, None, None, True, 0.5, 0.125)
""",
    # gelu computes 1 + erf(x / sqrt(2)), whose terms nearly cancel.
    "logarithm of the tail of gelu": """
v0 = grid(1, [], torch.float32)
v1 = grid(891, [3, 2, 7], torch.float32)
v2 = aten.rsub.Tensor(v1, v0, alpha=1)
v3 = aten.gelu.default(v2, approximate='none')
v4, v5 = aten._prelu_kernel_backward.default(v3, v3, v1)
v6 = aten.log2.default(v5)
""",
    "the tail of gelu in place": """
v0 = grid(66, [3, 2], torch.float32)
v1 = below(2, 278, [3])
v2 = grid(755, [2], torch.float32)
v3, v4 = aten.nll_loss_forward.default(v0, v1, v2, 2, -100)
aten.gelu_.default(v3, approximate='none')
""",
    # argmax returns the first of equal elements in index order, not in memory order.
    "greatest element of a transposition": """
v0 = grid(768, [4, 3], torch.int16)
v1 = aten.transpose.int(v0, -1, 1)
v2 = aten.t.default(v1)
v3 = aten.argmax.default(v2, None, False)
""",
    # Both rows refer to the same element, and the second row holds the old value.
    "write to one of rows that share memory": """
v0 = grid(1, [3, 1], torch.float32)
v1 = aten.as_strided.default(v0, [2, 1], [0, 0])
v2, v3 = aten.unbind.int(v1, 0)
aten.hardswish_.default(v2)
""",
    # Eager adds the bias in place, so the bias doesn't determine the dtype.
    "bias of another dtype": """
v0 = below(1, 347, [])
v1 = grid(679, [3, 2], torch.int16)
v2, v3 = aten.unbind.int(v1, -1)
v4 = grid(912, [3], torch.int16)
v5 = aten.linear.default(v2, v4, v0)
""",
    # The terms of a matrix product cancel, up to rounding.
    "comparison of a product's terms that cancel": """
v0 = grid(193, [3], torch.float32)
v1 = aten.new_zeros.default(v0, [4, 5, 5], dtype=torch.float32)
v2 = grid(416, [5], torch.float32)
v3, v4, v5 = aten.native_group_norm.default(v1, None, v2, 4, 5, 5, 1, 0.125)
v6, v7, v8 = aten.native_group_norm.default(v3, None, None, 4, 5, 5, 1, 0.125)
v9 = grid(319, [4, 5, 4], torch.float32)
v10 = aten.bmm.default(v6, v9)
v11 = aten.zeros.default([1, 4], dtype=torch.float32, device=device)
v12 = aten.copysign.Scalar(v11, -1)
v13 = aten.select.int(v12, 1, 2)
aten.ne_.Tensor(v10, v13)
""",
    # as_strided_ has replaced the base with a smaller view of its memory.
    "as_strided of a view of a shrunk base": """
v0 = noise(440, [2], torch.float32)
v1 = aten.select.int(v0, 0, 1)
aten.as_strided_.default(v0, [1], [0])
v2 = aten.as_strided.default(v1, [], [])
""",
    # The operand of lgamma is just below a pole.
    "lgamma of a result of mish": """
v7 = grid(777, [1, 2, 3, 5], torch.float32)
v8 = grid(788, [2, 1, 1, 1], torch.float32).requires_grad_()
v9 = noise(200, [2], torch.float32)
v10 = aten.convolution.default(v7, v8, v9, [2, 2], [1, 0], [1, 1], False, [0, 0], 2)
v18 = aten.digamma.default(v10)
v21 = aten.mish.default(v18)
aten.lgamma_.default(v21)
""",
    # The base of the written view refers to one element three times.
    "as_strided_ with a stride of 0": """
v79 = grid(1, [1], torch.float64)
aten.as_strided_.default(v79, [1, 1, 3], [0, 1, 0])
v81 = aten.select.int(v79, 2, -3)
aten.hardsigmoid_.default(v81)
""",
    # as_strided_ makes the view refer to memory next to its elements.
    "as_strided_ of a view": """
v0 = grid(925, [2, 3, 2, 1], torch.int64)
v1 = aten.permute.default(v0, [3, 0, -3, 2])
v2 = aten.angle.default(v1)
v3, v4 = aten.unbind.int(v2, 1)
aten.as_strided_.default(v4, [2, 2, 1], [1, 0, 2])
aten.add_.Scalar(v3, 1)
""",
}
