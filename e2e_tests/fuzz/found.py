"""Programs that once differed from eager, shortened: why, and their text."""

from __future__ import annotations

PROGRAMS = {
    # A kernel argument without elements, but of several rows, had no pointer type.
    "cumsum without elements": """
v0 = grid(1, [5, 0], torch.float32)
v1 = aten.cumsum.default(v0, -2)
v2 = aten.logcumsumexp.default(v0, 0)
""",
    # LLVM took the sign from the wrong bit of a bfloat that a loop found.
    "sign of a pooled bfloat16": """
v0 = grid(1, [1, 1, 3, 3], torch.bfloat16)
v1, v2 = aten.adaptive_max_pool2d.default(v0, [3, 4])
v3 = aten.signbit.default(v1)
""",
    # The shape rule wanted channels where the batch may be empty.
    "pooling of no channels": """
v0 = grid(1, [0, 3, 5], torch.float32)
v1, v2 = aten.adaptive_max_pool2d.default(v0, [1, 3])
""",
}
