import os

import lit.formats

config.name = "mlir_lowering"
config.test_format = lit.formats.ShTest()
config.suffixes = [".mlir", ".c", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)

config.environment["PATH"] = os.pathsep.join(
    [config.ltc_tools_dir, config.llvm_tools_dir, os.environ["PATH"]]
)

# Makes glibc overwrite freed memory, so that reads of freed memory give wrong results.
config.environment["MALLOC_PERTURB_"] = "165"

config.substitutions.append(("%python", config.python))
# An interpreter that has the PyPI package torch-mlir, by default that of './dev test'.
# Without one, the tests that need the package are skipped.
torch_mlir_python = config.torch_mlir_python or os.path.join(
    config.test_source_root, "..", "..", ".venv-torch-mlir", "bin", "python"
)
if os.path.exists(torch_mlir_python):
    config.available_features.add("torch-mlir")
    config.substitutions.append(("%torch_mlir_python", torch_mlir_python))
