"""`python -m torch_ltc.replay folder`: runs a saved program again.

The folder was written by `ExportedProgram.save`, by a dump, or when a backend failed. The
inputs are those of inputs.pt; without this file, they are random numbers from a seed
(integers are 0).
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch
from torch.jit._pickle import restore_type_tag

from torch_ltc._backends.mlir_module import CompiledModule, compile_mlir
from torch_ltc._export.manifest import read_manifest

# Files that a folder may contain, earliest stage first.
FILES = ("program.mlir", "torch-raw.mlir", "torch.mlir", "linalg.mlir")


def find_program(folder: Path, stage: str = "") -> Path:
    """Returns the file to run. Raises ValueError if there is none."""
    names = [f"{stage}.mlir"] if stage else FILES
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise ValueError(f"'{folder}' has no {' and no '.join(names)}.")


def saved_values(folder: Path) -> tuple[list[torch.Tensor], list[float]] | None:
    path = folder / "inputs.pt"
    if not path.is_file():
        return None
    # In a file that C++ wrote (a dump), each list is passed to restore_type_tag with its
    # TorchScript type. The function returns the list, so it is safe to allow it.
    with torch.serialization.safe_globals([restore_type_tag]):
        values = torch.load(path)
    return values["inputs"], values["scalars"]


def random_values(
    module: CompiledModule, seed: int
) -> tuple[list[torch.Tensor], list[float]]:
    generator = torch.Generator().manual_seed(seed)
    tensors = []
    for spec in module.inputs:
        if spec.dtype.is_floating_point:
            tensor = torch.randn(spec.shape, generator=generator).to(spec.dtype)
        else:
            tensor = torch.zeros(spec.shape, dtype=spec.dtype)
        tensors.append(tensor)
    return tensors, [0.5 if kind == "float" else 1 for kind in module.scalars]


def describe(tensor: torch.Tensor) -> str:
    """Returns a tensor's dtype and shape, the mean, minimum and maximum of its finite
    elements, and the number of NaN and Inf, as text."""
    text = f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
    if tensor.numel() == 0:
        return text
    values = tensor.double()
    bad = int((~torch.isfinite(values)).sum())
    finite = values[torch.isfinite(values)]
    if finite.numel():
        text += f"  mean {finite.mean():.6g}  min {finite.min():.6g}"
        text += f"  max {finite.max():.6g}"
    return text + (f"  {bad} NaN or Inf" if bad else "")


def replay(
    folder: Path, stage: str = "", seed: int = 0, repeat: int = 0
) -> list[torch.Tensor]:
    """Compiles and runs the program in `folder`; prints a line for each output and returns
    the outputs. `repeat`: the number of runs whose median time is printed. Raises
    ValueError if the folder has no program, RuntimeError if it can't be compiled."""
    path = find_program(folder, stage)
    if (folder / "manifest.json").exists():
        read_manifest(folder)  # checks the version
    module = compile_mlir(path.read_text())
    saved = saved_values(folder)
    tensors, scalars = saved or random_values(module, seed)
    print(
        f"{path}: {len(module.inputs)} inputs ("
        + ("inputs.pt" if saved else f"random, seed {seed}")
        + f"), {len(scalars)} scalars, {len(module.outputs)} outputs"
    )
    # Each run gets copies of the inputs, because it may overwrite donated ones.
    results = module(*[tensor.clone() for tensor in tensors], *scalars)
    for number, result in enumerate(results):
        print(f"  output {number}  {describe(result)}")
    if repeat:
        times = []
        for _ in range(repeat):
            inputs = [tensor.clone() for tensor in tensors]
            started = time.perf_counter()
            module(*inputs, *scalars)
            times.append(time.perf_counter() - started)
        print(f"  median of {repeat} runs: {sorted(times)[repeat // 2] * 1e3:.3f} ms")
    return results


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m torch_ltc.replay", description=(__doc__ or "").split("\n\n")[1]
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--stage", default="", help="torch-raw, torch or linalg")
    parser.add_argument("--seed", type=int, default=0, help="seed of random inputs")
    parser.add_argument("--repeat", type=int, default=0, help="number of runs to time")
    options = parser.parse_args(arguments)
    try:
        replay(options.folder, options.stage, options.seed, options.repeat)
    except (ValueError, RuntimeError) as error:
        print(f"torch_ltc.replay: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
