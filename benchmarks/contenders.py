"""Lists the contenders, and runs each in its own process."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# JAX isn't a dependency: it is installed in a separate environment.
JAX_PYTHON = HERE.parent / ".venv-jax" / "bin" / "python"


@dataclass(frozen=True)
class Contender:
    name: str
    # Environment variable for the folder of the contender's disk cache.
    cache_variable: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    # Name of the contender's step in training_steps.py, if it isn't `name`.
    step: str = ""


@dataclass(frozen=True)
class Settings:
    threads: int
    jax_python: Path = JAX_PYTHON


_WITHOUT_OURS = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
_INDUCTOR = "TORCHINDUCTOR_CACHE_DIR"
# As with the other compilers, the first step waits for its program. `--set scripts` uses
# the default tier.
COMPILED = {"TORCH_LTC_CACHE": "1", "TORCH_LTC_TIER": "compile"}

ALL = [
    Contender("eager", variables=_WITHOUT_OURS),
    Contender("eager fused", variables=_WITHOUT_OURS),
    Contender("TorchScript LTC", variables=_WITHOUT_OURS),
    Contender("compile", _INDUCTOR, _WITHOUT_OURS),
    Contender("compile step", _INDUCTOR, _WITHOUT_OURS),
    Contender("jax"),
    Contender("lazy", "TORCH_LTC_CACHE_DIR", COMPILED),
    Contender("lazy captured", "TORCH_LTC_CACHE_DIR", COMPILED),
]
NAMES = [contender.name for contender in ALL]
QUICK = ["eager", "eager fused", "lazy", "lazy captured"]


class Failed(Exception):
    """Raised if a contender can't train the workload; the message says why."""


def export(workload: str, path: str) -> None:
    """Writes the weights and batches of a workload to the .npz file `path`."""
    command = [sys.executable, str(HERE / "torch_contender.py"), "eager", workload]
    subprocess.run(
        [*command, "1", "--export", path],
        check=True,
        env={**os.environ, **_WITHOUT_OURS},
    )


class Process:
    """A contender that trains one workload in its own process."""

    def __init__(
        self, contender: Contender, workload: str, settings: Settings, files: Path
    ) -> None:
        threads = settings.threads
        variables = {**os.environ, **contender.variables}
        variables["OMP_NUM_THREADS"] = variables["MKL_NUM_THREADS"] = str(threads)
        if contender.cache_variable:
            folder = files / f"cache-{contender.name}".replace(" ", "-")
            variables[contender.cache_variable] = str(folder)
        command = [sys.executable, str(HERE / "torch_contender.py")]
        command += [contender.step or contender.name, workload, str(threads)]
        if contender.name == "jax":
            weights = str(files / "weights.npz")
            script = str(HERE / "jax_contender.py")
            command = [
                str(settings.jax_python),
                script,
                workload,
                str(threads),
                weights,
            ]
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - see close
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=variables,
            text=True,
        )
        self.version = self._read(120)["version"]

    def _reason(self) -> str:
        self.errors.seek(0)
        lines = [line for line in self.errors.read().splitlines() if line.strip()]
        # Prefer the last line with an error: in a traceback, advice may follow it.
        named = [line for line in lines if "Error" in line or "error:" in line]
        return (named or lines or ["it ended without a message"])[-1].strip()[:300]

    def _read(self, limit: float) -> dict[str, Any]:
        ready, _, _ = select.select([self.process.stdout], [], [], limit)
        if not ready:
            self.close()
            raise Failed(f"no answer within {limit:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            raise Failed(self._reason())
        return json.loads(line)

    def ask(self, do: str, limit: float = 120, **arguments: Any) -> dict[str, Any]:
        """Sends the request `do` and returns the answer. Raises Failed if the process
        ends or doesn't answer within `limit` seconds."""
        request = json.dumps({"do": do, **arguments})
        with contextlib.suppress(BrokenPipeError):
            print(request, file=self.process.stdin, flush=True)
        return self._read(limit)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.errors.close()


class OthersLoad:
    """Measures the share of the processors that other processes use while a contender
    runs."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.busy = self._busy_seconds()

    @staticmethod
    def _busy_seconds() -> float:
        """Returns the busy seconds of all processors since boot. Time stolen by other
        virtual machines counts as busy."""
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        user, nice, system, _idle, _wait, irq, soft, steal = map(int, fields)
        ticks = user + nice + system + irq + soft + steal
        return ticks / os.sysconf("SC_CLK_TCK")

    def share(self, own: float) -> float:
        """Returns the share of the processors that other processes have used since this
        object was constructed. `own`: the contender's processor seconds in this time."""
        elapsed = time.perf_counter() - self.started
        others = max(0.0, self._busy_seconds() - self.busy - own)
        return others / max(elapsed * (os.cpu_count() or 1), 1e-9)
