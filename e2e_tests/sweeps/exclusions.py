"""OpInfo entries that can't be compared, and failures that are known."""

from __future__ import annotations

#: Entry -> why eager has no one answer.
EXCLUDED: dict[str, str] = {
    "empty": "uninitialised memory",
    "empty_like": "uninitialised memory",
    "empty_permuted": "uninitialised memory",
    "empty_strided": "uninitialised memory",
    "new_empty": "uninitialised memory",
    "new_empty_strided": "uninitialised memory",
}

_TIES = "which of equal elements is taken is unspecified"
_SPARSE = "device lazy has no sparse tensors"
_POLYGAMMA = "functionalisation (torch 2.13) refuses aten::polygamma_"

#: Entry -> why a sample fails or differs. Remove the line with the defect.
KNOWN_FAILURES: dict[str, str] = {
    "_native_batch_norm_legit": "out= of the wrong size isn't resized",
    "argsort": _TIES,
    "grid_sampler_2d": "bfloat16: eager rounds coordinates at other places",
    "hash_tensor": "uint64 can't be made on device lazy",
    "kthvalue": _TIES,
    "linalg.matrix_rank": "out= isn't written",
    "linalg.matrix_rank.hermitian": "out= isn't written",
    "native_dropout_backward": "integer gradients become float32 in eager",
    "nn.functional.linear_cross_entropy.chunked": "writes in place below autograd",
    "nn.functional.linear_cross_entropy.chunked_none": "writes in place below autograd",
    "polygamma.polygamma_n_0": _POLYGAMMA,
    "polygamma.polygamma_n_1": _POLYGAMMA,
    "polygamma.polygamma_n_2": _POLYGAMMA,
    "polygamma.polygamma_n_3": _POLYGAMMA,
    "polygamma.polygamma_n_4": _POLYGAMMA,
    "sort": _TIES,
    "sparse.mm.reduce": _SPARSE,
    "sparse.sampled_addmm": _SPARSE,
    "to_sparse": _SPARSE,
    "topk": _TIES,
}


def is_excluded(entry: str) -> bool:
    return entry in EXCLUDED
