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
                # At most 32 buffers reach a dispatch: those of temporaries become one.
                "--iree-stream-resource-alias-mutable-bindings",
                # 3.13 computes `matmul(linalg.fill, w) + b` wrongly on AVX-512.
                "--iree-opt-generalize-matmul",
            ],
        )
        context = iree.runtime.SystemContext(config=iree.runtime.Config(device=_device))
        module = iree.runtime.VmModule.copy_buffer(context.instance, code)
        context.add_vm_module(module)
        function = context.modules[module.name][program.entry]

        def run(*arguments):
            values = [
                a.numpy() if isinstance(a, torch.Tensor) else a for a in arguments
            ]
            results = function(*values)
            results = results if isinstance(results, tuple) else (results,)
            return [  # bool is a byte to IREE
                torch.from_numpy(result.to_host()).view(output.dtype)
                for result, output in zip(results, program.outputs)
            ]

        return run

    return compile


# What its torch-mlir has no linalg for: runs eagerly, or take stage linalg.
unsupported = [
    "aten.avg_pool2d_backward",
    "aten.embedding_dense_backward",
    "aten.hardswish_backward",
    "aten.select_backward",
    "aten.slice_backward",
]
torch_ltc.register_backend("iree", compiler("torch"), unsupported_ops=unsupported)
torch_ltc.register_backend("iree-linalg", compiler("auto"), stage="linalg")
