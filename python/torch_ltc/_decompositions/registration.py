"""Registers formulas in Python that decompose ops into traced ops.

PyTorch has formulas for its ops, which its compilers use (`torch._decomp`). The formulas in
`TORCH_DECOMPOSITIONS` replace ops without a lowering; `PYTHON_DECOMPOSITIONS` lists our
formulas for ops where PyTorch has none, or none that agrees with its kernels. All formulas
run below autograd, so that the gradient is eager's, including infinities, NaN and ties. The
formulas in `ABOVE_AUTOGRAD` also run above autograd, which differentiates them.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from torch_ltc._backend import bindings

#: Overloads of `torch.ops.aten` (torch 2.13). Each formula consists of functional ops
#: and views; the OpInfo sweep compares the formulas with eager.
TORCH_DECOMPOSITIONS = (
    # windows
    "col2im",
    "im2col",
    # reductions and norms
    "aminmax",
    "dist",
    "nansum",
    "norm.ScalarOpt_dim_dtype",
    "norm.ScalarOpt_dtype",
    # matrices and positions
    "diag_embed",
    "rot90",
    "trace",
    # special functions
    "nan_to_num",
)

#: The module and function of this package for each op, imported on first use.
PYTHON_DECOMPOSITIONS = {
    "_adaptive_avg_pool3d": "pooling.adaptive_avg_pool3d",
    "_amp_foreach_non_finite_check_and_unscale": "scaling.non_finite_check_and_unscale",
    "_amp_update_scale": "scaling.update_scale",
    "_cdist_backward": "linear.cdist_backward",
    "_cdist_forward": "linear.cdist_forward",
    "_embedding_bag": "embedding.embedding_bag",
    "_embedding_bag_backward": "embedding.embedding_bag_backward",
    "_embedding_bag_forward_only": "embedding.embedding_bag_forward_only",
    "_embedding_bag_per_sample_weights_backward": "embedding.embedding_bag_per_sample_weights_backward",
    "_native_multi_head_attention": "attention.native_multi_head_attention",
    "_pack_padded_sequence": "packing.pack_padded_sequence",
    "_pad_packed_sequence": "packing.pad_packed_sequence",
    "_pdist_backward": "linear.pdist_backward",
    "_pdist_forward": "linear.pdist_forward",
    "_transformer_encoder_layer_fwd": "attention.transformer_encoder_layer",
    "_trilinear": "linear.trilinear",
    "_upsample_nearest_exact1d": "interpolation.upsample_nearest_exact1d",
    "_upsample_nearest_exact2d": "interpolation.upsample_nearest_exact2d",
    "_upsample_nearest_exact3d": "interpolation.upsample_nearest_exact3d",
    "_weight_norm_interface": "normalization.weight_norm",
    "_weight_norm_interface_backward": "normalization.weight_norm_backward",
    "adaptive_max_pool3d": "pooling.adaptive_max_pool3d",
    "adaptive_max_pool3d_backward": "pooling.adaptive_max_pool3d_backward",
    "affine_grid_generator": "sampling.affine_grid_generator",
    "avg_pool3d": "pooling.avg_pool3d",
    "block_diag": "data_movement.block_diag",
    "channel_shuffle": "data_movement.channel_shuffle",
    "grid_sampler_2d": "sampling.grid_sampler_2d",
    "grid_sampler_3d": "sampling.grid_sampler_3d",
    "isin.Tensor_Tensor": "indexing.isin",
    "linalg_cross": "linear.cross",
    "masked_scatter_backward": "indexing.masked_scatter_backward",
    "max_pool3d_with_indices": "pooling.max_pool3d_with_indices",
    "max_pool3d_with_indices_backward": "pooling.max_pool3d_with_indices_backward",
    "max_unpool2d": "pooling.max_unpool2d",
    "max_unpool3d": "pooling.max_unpool3d",
    "median": "reduction.median",
    "multi_margin_loss": "loss.multi_margin_loss",
    "multi_margin_loss_backward": "loss.multi_margin_loss_backward",
    "multilabel_margin_loss_backward": "loss.multilabel_margin_loss_backward",
    "multilabel_margin_loss_forward": "loss.multilabel_margin_loss_forward",
    "mvlgamma": "elementwise.mvlgamma",
    "nanmedian": "reduction.nanmedian",
    "narrow_copy": "data_movement.narrow_copy",
    "renorm": "normalization.renorm",
    "special_xlog1py": "elementwise.xlog1py",
    "upsample_bicubic2d": "interpolation.upsample_bicubic2d",
    "upsample_bilinear2d": "interpolation.upsample_bilinear2d",
    "upsample_linear1d": "interpolation.upsample_linear1d",
    "upsample_nearest1d": "interpolation.upsample_nearest1d",
    "upsample_nearest3d": "interpolation.upsample_nearest3d",
    "upsample_trilinear3d": "interpolation.upsample_trilinear3d",
}

#: Ops that are linear in their first operand: eager saves no values for their gradients,
#: except for those in `SAVES_OPERAND`.
LINEAR = (
    "_adaptive_avg_pool3d",
    "_upsample_nearest_exact1d",
    "_upsample_nearest_exact2d",
    "_upsample_nearest_exact3d",
    "avg_pool3d",
    "upsample_bicubic2d",
    "upsample_bilinear2d",
    "upsample_linear1d",
    "upsample_nearest1d",
    "upsample_nearest3d",
    "upsample_trilinear3d",
)

SAVES_OPERAND = ("_adaptive_avg_pool3d", "avg_pool3d")

#: Ops whose gradient in eager has no lowering or reads a value, and `narrow_copy`, which
#: functionalization would decompose with different errors.
ABOVE_AUTOGRAD = (
    *LINEAR,
    "_pack_padded_sequence",
    "_pad_packed_sequence",
    "grid_sampler_2d",
    "grid_sampler_3d",
    "median",
    "nanmedian",
    "narrow_copy",
)

#: Formulas whose derivative is eager's gradient, for ops where the derivative of the
#: formula in `PYTHON_DECOMPOSITIONS` isn't.
LINEAR_GRADIENTS = {
    "upsample_bicubic2d": "interpolation.derived_bicubic2d",
    "upsample_nearest1d": "interpolation.copies_nearest1d",
    "upsample_nearest3d": "interpolation.copies_nearest3d",
}

#: Ops whose formula also runs above autograd if a sparse gradient is requested.
WITH_SPARSE_GRADIENTS = ("_embedding_bag",)

_libraries: list[torch.library.Library] = []


def overload(name: str) -> Any:
    packet, _, rest = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), rest or "default")


def _torch_decomposition(op: Any) -> Callable:
    def formula(*args: Any, **kwargs: Any) -> Any:
        from torch._decomp import decomposition_table

        return decomposition_table[op](*args, **kwargs)

    return formula


def _python_decomposition(path: str) -> Callable:
    module, _, name = path.partition(".")

    def formula(*args: Any, **kwargs: Any) -> Any:
        function = getattr(
            importlib.import_module(f"torch_ltc._decompositions.{module}"), name
        )
        return function(*args, **kwargs)

    return formula


_UNFIT = "arguments of these sizes or dtypes"
_MAX_ELEMENTS = 4096
_taken: dict[tuple, bool] = {}


#: Sizes up to this are their own stand-ins.
_MAX_EXACT = 8


def _small_numbers(leaves: list[Any]) -> dict[int, int]:
    """Maps sizes and integers above 8 to small ones in the same order, so that eager's
    comparisons of them have the same results (unless it divides or adds them)."""
    numbers = {leaf for leaf in leaves if type(leaf) is int and leaf > _MAX_EXACT}
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            numbers.update(size for size in leaf.shape if size > _MAX_EXACT)
    return {number: _MAX_EXACT + 1 + i for i, number in enumerate(sorted(numbers))}


def _stand_in(value: Any, small: dict[int, int]) -> Any:
    """Replaces a lazy tensor by a CPU tensor of the same dtype. `small` maps sizes to those
    of the CPU tensor. Integer tensors contain zeros, which are indices in range, and masks
    select nothing, because the true mask may select less than all elements."""
    if isinstance(value, torch.Tensor) and value.device.type == "lazy":
        make = torch.ones if value.is_floating_point() else torch.zeros
        sizes = [small.get(size, size) for size in value.shape]
        return make(sizes, dtype=value.dtype, device="cpu")
    if type(value) is int:
        return small.get(value, value)
    return torch.device("cpu") if isinstance(value, torch.device) else value


def _kind(value: Any, small: dict[int, int]) -> Any:
    if isinstance(value, torch.Tensor):
        sizes = tuple(small.get(size, size) for size in value.shape)
        return (sizes, value.dtype, value.device.type)
    return (
        type(value),
        small.get(value) or value if type(value) is int else repr(value),
    )


def _is_taken(op: Any, args: tuple, kwargs: dict[str, Any]) -> bool:
    """Whether eager's kernel accepts these sizes, dtypes and numbers. Formulas check
    less strictly, so eager's kernel first runs on stand-ins, once for each combination of
    these. In calls with more than 4096 elements, the stand-ins have small sizes; only if
    eager rejects these, it is run on stand-ins of the true sizes."""
    leaves, spec = tree_flatten((args, kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    if any(tensor._has_symbolic_sizes_strides for tensor in tensors):
        return False  # a formula would make sizes constants of the compiled graph
    is_large = sum(tensor.numel() for tensor in tensors) > _MAX_ELEMENTS
    small = _small_numbers(leaves) if is_large else {}
    accepts_small = is_large and _accepts(op, leaves, spec, small)
    return accepts_small or _accepts(op, leaves, spec, {})


def _accepts(op: Any, leaves: list[Any], spec: Any, small: dict[int, int]) -> bool:
    key = (op, spec, *(_kind(leaf, small) for leaf in leaves))
    if key not in _taken:
        if len(_taken) > _MAX_ELEMENTS:
            _taken.clear()
        try:
            # The user's modes must not see this call.
            with _disable_current_modes(), torch._C._AutoDispatchBelowAutograd():
                stand_ins = [_stand_in(leaf, small) for leaf in leaves]
                given, named = tree_unflatten(stand_ins, spec)
                bindings().check_unchecked_operands(op.name(), *given, **named)
                op(*given, **named)
            _taken[key] = True
        except Exception:
            _taken[key] = False
    return _taken[key]


def _as_new(value: Any) -> Any:
    """Copies a view, because an op's result must not share memory with an operand. (For
    functionalization, even the result of `_unsafe_view` is a view.)"""
    if isinstance(value, torch.Tensor) and value._is_view():
        return value.clone()
    return value


@contextlib.contextmanager
def _noting_errors_of_hooks() -> Iterator[list[Exception]]:
    """Collects the errors that the user's hooks for saved tensors raise. A checkpoint ends
    its recomputation by such an error."""
    raised: list[Exception] = []
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(True)
    if hooks is None:
        yield raised
        return
    pack, unpack = hooks

    def noting(tensor: torch.Tensor) -> Any:
        try:
            return pack(tensor)
        except Exception as error:
            raised.append(error)
            raise

    with torch.autograd.graph.saved_tensors_hooks(noting, unpack):
        yield raised


def _above(op: Any, formula: Callable) -> Callable:
    """Returns the kernel above autograd: the formula, or, for calls that the formula can't
    compute, PyTorch's kernel, which has eager's results and messages."""
    keys = (torch._C.DispatchKey.Autograd, torch._C.DispatchKey.CompositeImplicitAutograd)  # fmt: skip
    key = next(key for key in keys if op.has_kernel_for_dispatch_key(key))

    def kernel(*args: Any, **kwargs: Any) -> Any:
        if _is_taken(op, args, kwargs):
            with _noting_errors_of_hooks() as raised:
                try:
                    return tree_map(_as_new, formula(*args, **kwargs))
                except Exception:
                    if raised:
                        raise
        return op._op_dk(key, *args, **kwargs)

    return kernel


def _above_if_sparse(op: Any, formula: Callable) -> Callable:
    """Returns a kernel that runs the formula above autograd if a sparse gradient is
    requested, which no kernel below autograd can return."""
    place = [argument.name for argument in op._schema.arguments].index("sparse")
    autograd = torch._C.DispatchKey.Autograd
    above = _above(op, formula)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        if args[place] if len(args) > place else kwargs.get("sparse", False):
            return above(*args, **kwargs)
        return op._op_dk(autograd, *args, **kwargs)

    return kernel


def _with_gradient(name: str, formula: Callable) -> Callable:
    """Returns `formula`; for an op in `LINEAR`, with a gradient that saves only what eager
    saves."""
    if name not in LINEAR:
        return formula

    @functools.cache
    def differentiable() -> Callable:
        from torch_ltc._decompositions.gradients import linear

        path = LINEAR_GRADIENTS.get(name)
        derived = _python_decomposition(path) if path else formula
        return linear(name, formula, derived, name in SAVES_OPERAND)

    return lambda *args, **kwargs: differentiable()(*args, **kwargs)


def _new_memory() -> contextlib.AbstractContextManager:
    """Returns a context in which a formula's results in inference mode are inference
    tensors, even if the caller excludes key ADInplaceOrView: PyTorch only excludes this
    key to create views of normal tensors."""
    if not torch.is_inference_mode_enabled():
        return contextlib.nullcontext()
    excluded = torch._C._dispatch_tls_local_exclude_set()
    return torch._C._ForceDispatchKeyGuard(
        torch._C._dispatch_tls_local_include_set(),
        excluded.remove(torch._C.DispatchKey.ADInplaceOrView),
    )


def _below(op: Any, formula: Callable) -> Callable:
    # Random ops aren't tried with eager's kernel, because it would advance the generator.
    draws = torch.Tag.nondeterministic_seeded in op.tags

    def kernel(*args: Any, **kwargs: Any) -> Any:
        if draws or _is_taken(op, args, kwargs):
            with contextlib.suppress(Exception), _new_memory():
                return formula(*args, **kwargs)
        return bindings().call_eagerly(op.name(), _UNFIT, *args, **kwargs)

    return kernel


def install() -> None:
    library = torch.library.Library("aten", "IMPL")
    formulas = {
        name: _torch_decomposition(overload(name)) for name in TORCH_DECOMPOSITIONS
    }
    formulas |= {
        name: _python_decomposition(path)
        for name, path in PYTHON_DECOMPOSITIONS.items()
    }
    with warnings.catch_warnings():
        # Ignore the warnings that formulas replace kernels: for ops that PyTorch
        # decomposes, fallbacks are already registered by name.
        warnings.filterwarnings("ignore", message="Warning only once for all oper")
        warnings.filterwarnings("ignore", message=".*previously registered kernel")
        for name, formula in formulas.items():
            library.impl(name, _below(overload(name), formula), "Lazy")
            if name in ABOVE_AUTOGRAD:
                above = _above(overload(name), _with_gradient(name, formula))
                library.impl(name, above, "AutogradLazy")
            if name in WITH_SPARSE_GRADIENTS:
                above = _above_if_sparse(overload(name), formula)
                library.impl(name, above, "AutogradLazy")
        bindings().remember_formulas([overload(name).name() for name in formulas])
        packing = _python_decomposition("packing.pack_functional")
        library.impl("_pack_padded_sequence", packing, "Functionalize")
    _libraries.append(library)
