"""Backends "iree" and "iree-linalg": programs compiled and run by IREE on the CPU.

pip install iree-base-compiler iree-base-runtime
"""

import iree.compiler.tools
import iree.runtime
import torch
import torch_ltc

_device = iree.runtime.get_device("local-task")


def compiler(input_type):
    def compile(program):
        code = iree.compiler.tools.compile_str(
            program.text,
            input_type=input_type,
            target_backends=["llvm-cpu"],
            extra_args=[
                "--iree-llvmcpu-target-cpu=host",
                "--iree-input-demote-f64-to-f32=false",  # IREE's default: true
                # Merges temporary buffers: a dispatch supports at most 32 buffers.
                "--iree-stream-resource-alias-mutable-bindings",
                # IREE 3.13 otherwise miscomputes matmul(linalg.fill, w) + b on AVX-512.
                "--iree-opt-generalize-matmul",
            ],
        )
        context = iree.runtime.SystemContext(config=iree.runtime.Config(device=_device))
        module = iree.runtime.VmModule.copy_buffer(context.instance, code)
        context.add_vm_module(module)
        function = context.modules[module.name][program.entry]

        def run(*arguments):
            tensors = (isinstance(a, torch.Tensor) for a in arguments)
            values = [a.numpy() if t else a for a, t in zip(arguments, tensors)]
            results = function(*values)
            results = results if isinstance(results, tuple) else (results,)
            return [  # IREE returns bytes for bool
                torch.from_numpy(result.to_host()).view(output.dtype)
                for result, output in zip(results, program.outputs)
            ]

        return run

    return compile


# Ops that IREE 3.13 can't compile from any stage: they run eagerly.
KINDS = ("reflection", "replication")
PADS = [f"aten.{kind}_pad{n}d_backward" for kind in KINDS for n in "123"]
# Ops for which IREE's torch-mlir has no linalg lowering: they run eagerly. At stage
# linalg, IREE compiles them.
TORCH = """avg_pool2d_backward embedding_dense_backward hardswish_backward select_backward
slice_backward reflection_pad1d reflection_pad2d reflection_pad3d as_strided_scatter"""
unsupported = PADS + [f"aten.{name}" for name in TORCH.split()]
register = torch_ltc.register_backend
register("iree", compiler("torch"), unsupported_ops=unsupported)
register("iree-linalg", compiler("auto"), stage="linalg", unsupported_ops=PADS)
