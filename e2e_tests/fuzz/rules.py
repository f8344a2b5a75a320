"""Ops whose operands must match each other, and how their arguments are drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from fuzz import rules_indexing as indexing
from fuzz import rules_networks as networks
from fuzz import rules_views as views
from fuzz.arguments import Drawn

if TYPE_CHECKING:
    from fuzz.drawing import Drawing

_aten = torch.ops.aten

RULES: dict[str, Callable[[Drawing], Drawn]] = {
    "view": views.view,
    "_unsafe_view": views.view,
    "expand": views.expand,
    "select": views.select,
    "slice": views.slice_,
    "diagonal": views.diagonal,
    "unfold": views.unfold,
    "as_strided": views.as_strided,
    "split": views.split,
    "split_with_sizes": views.split_with_sizes,
    "select_scatter": views.scatter_of(views.select, _aten.select.int),
    "slice_scatter": views.scatter_of(views.slice_, _aten.slice.Tensor),
    "diagonal_scatter": views.scatter_of(views.diagonal, _aten.diagonal.default),
    "as_strided_scatter": views.scatter_of(views.as_strided, _aten.as_strided.default),
    "cat": views.cat,
    "roll": views.roll,
    **{
        f"{kind}_pad{number}d": views.pad(number)
        for kind in ("reflection", "replication")
        for number in (1, 2, 3)
    },
    "pixel_shuffle": views.pixel_shuffle,
    "pixel_unshuffle": views.pixel_unshuffle,
    "full": views.full,
    "arange": views.arange,
    "arange.start": views.arange_start,
    "arange.start_step": views.arange_step,
    "index_select": indexing.index_select,
    "index_add": indexing.index_add,
    "index_copy": indexing.index_copy,
    "index_reduce": indexing.index_reduce,
    "index_fill.int_Scalar": indexing.index_fill,
    "index_fill.int_Tensor": indexing.index_fill_tensor,
    "gather": indexing.gather,
    "scatter.src": indexing.scatter,
    "scatter.value": indexing.scatter_value,
    "scatter.reduce": indexing.scatter_with,
    "scatter.value_reduce": indexing.scatter_value_with,
    "scatter_add": indexing.scatter_add,
    "scatter_reduce": indexing.scatter_reduce,
    "index": indexing.index,
    "index_put": indexing.index_put,
    "put": indexing.put,
    "masked_scatter": indexing.masked_scatter,
    "searchsorted.Tensor": indexing.searchsorted,
    "searchsorted.Scalar": indexing.searchsorted_scalar,
    "bucketize": indexing.bucketize,
    "embedding": indexing.embedding,
    "topk": indexing.topk,
    "sort.stable": indexing.sort_stable,
    "mm": networks.product("nk", "km"),
    "bmm": networks.product("bnk", "bkm"),
    "addmm": networks.product("nk", "km", added="nm", scaled=True),
    "baddbmm": networks.product("bnk", "bkm", added="bnm", scaled=True),
    "addbmm": networks.product("bnk", "bkm", added="nm", scaled=True),
    "mv": networks.product("nk", "k"),
    "addmv": networks.product("nk", "k", added="n", scaled=True),
    "dot": networks.product("k", "k"),
    "vdot": networks.product("k", "k"),
    "addr": networks.product("n", "m", added="nm", scaled=True),
    "convolution": networks.convolution,
    "max_pool2d_with_indices": networks.max_pool2d,
    "avg_pool2d": networks.avg_pool2d,
    "_adaptive_avg_pool2d": networks.adaptive_pool2d,
    "adaptive_max_pool2d": networks.adaptive_pool2d,
    "upsample_nearest2d": networks.upsample,
    "native_layer_norm": networks.layer_norm,
    "native_batch_norm": networks.batch_norm,
    "native_group_norm": networks.group_norm,
    "nll_loss_forward": networks.nll_loss(2),
    "nll_loss2d_forward": networks.nll_loss(4),
    "binary_cross_entropy": networks.binary_cross_entropy,
    "_softmax": networks.softmax,
    "_log_softmax": networks.softmax,
    "native_dropout": networks.dropout,
    "bernoulli": networks.bernoulli,
    "bernoulli.p": networks.bernoulli_p,
    "bernoulli_.float": networks.bernoulli_p,
    "norm.Scalar": networks.norm_all,
    "norm.ScalarOpt_dim": networks.norm,
    "linalg_vector_norm": networks.norm,
    **{
        f"{name}.{overload}": networks.shift(by_scalar)
        for name in ("bitwise_left_shift", "bitwise_right_shift")
        for overload, by_scalar in (("Tensor", False), ("Tensor_Scalar", True))
    },
    **{
        f"__{name}__.{overload}": networks.shift(overload == "Scalar")
        for name in ("lshift", "rshift")
        for overload in ("Tensor", "Scalar")
    },
}
