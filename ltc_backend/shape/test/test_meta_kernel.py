"""Meta kernels infer the shapes of calls with lists, optional tensors and numbers; errors
name the op."""

import _shape_testing
import pytest
import torch

F32, F64, I64 = torch.float32, torch.float64, torch.int64


def by_meta(op, *args, **kwargs):
    return _shape_testing.infer_with_meta_kernel(op, args, kwargs)


def test_tensor_lists():
    tensors = [torch.ones(2, 3), torch.ones(1, 3, dtype=F64)]
    assert by_meta("aten::cat", tensors, 0) == [(F64, [3, 3])]


def test_list_results():
    assert by_meta("aten::split_copy.Tensor", torch.ones(5, 2), 2, 0) == [
        (F32, [2, 2]),
        (F32, [2, 2]),
        (F32, [1, 2]),
    ]


def test_optional_tensors():
    index = torch.zeros(4, dtype=I64)
    assert by_meta("aten::index.Tensor", torch.ones(2, 3), [None, index]) == [
        (F32, [2, 4])
    ]
    assert by_meta(
        "aten::native_layer_norm", torch.ones(2, 3), [3], None, None, 1e-5
    ) == [(F32, [2, 3]), (F32, [2, 1]), (F32, [2, 1])]


def test_undefined_results():
    results = by_meta(
        "aten::native_layer_norm_backward",
        *(torch.ones(2, 3), torch.ones(2, 3), [3]),
        *(torch.ones(2, 1), torch.ones(2, 1), torch.ones(3), torch.ones(3)),
        [True, False, True],
    )
    assert results == [(F32, [2, 3]), None, (F32, [3])]


def test_zero_dim_and_wrapped_numbers_promote_differently():
    ints, number = torch.ones(2, dtype=I64), torch.tensor(2.5, dtype=F64)
    assert by_meta("aten::mul.Tensor", ints, number) == [(F64, [2])]
    wrapped = _shape_testing.wrapped_number(number)
    assert by_meta("aten::mul.Tensor", ints, wrapped) == [(F32, [2])]


def test_constructors_make_nothing_on_the_cpu():
    huge = 1 << 40
    assert by_meta("aten::full", [huge], 1.5) == [(F32, [huge])]


def test_generators_are_left_alone():
    before = torch.get_rng_state()
    assert by_meta(
        "aten::bernoulli.p", torch.ones(3), 0.5, generator=torch.default_generator
    ) == [(F32, [3])]
    assert torch.equal(before, torch.get_rng_state())


def test_wrong_arguments_fail_with_the_kernels_message():
    with pytest.raises(RuntimeError, match="must have same reduction dim"):
        by_meta("aten::mm", torch.ones(2, 3), torch.ones(2, 3))
    with pytest.raises(IndexError, match=r"got 5.*in aten::slice_copy\.Tensor"):
        by_meta("aten::slice_copy.Tensor", torch.ones(2), 5)


def test_ops_without_meta_kernel_are_named():
    library = torch.library.Library("ltc_shape_test", "DEF")
    library.define("opaque(Tensor self) -> Tensor")
    library.impl("opaque", lambda self: self.clone(), "CPU")
    with pytest.raises(NotImplementedError, match=r"ltc_shape_test::opaque"):
        _shape_testing.infer_any_with_meta_kernel(
            "ltc_shape_test::opaque", torch.ones(2)
        )


def test_custom_ops_with_a_fake_kernel():
    library = torch.library.Library("ltc_shape_test_fake", "DEF")
    library.define("twice(Tensor self) -> Tensor")
    library.impl("twice", lambda self: self.new_empty(2 * self.shape[0]), "Meta")
    assert _shape_testing.infer_any_with_meta_kernel(
        "ltc_shape_test_fake::twice", torch.ones(3)
    ) == [(F32, [6])]
