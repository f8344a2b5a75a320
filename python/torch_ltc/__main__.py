"""`python -m torch_ltc`: prints versions, the device and the cache in a few lines.

`--json` prints the same data as a JSON object; `--help` lists the package's other commands
and every environment variable that the package reads.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from typing import Any

from torch_ltc import _backend
from torch_ltc.version import VERSION

_COMMANDS = {
    "torch_ltc.doctor": "checks what is installed and whether it is compatible",
    "torch_ltc.replay": "runs a saved program again",
    "torch_ltc.dump_page": "writes readable pages for dumped programs",
}


def summary() -> dict[str, Any]:
    """Returns versions, device and cache; sizes are in bytes.

    If the backend can't be loaded, `devices` is empty and `problem` is the reason.
    """
    import torch

    row: dict[str, Any] = {"torch_ltc": VERSION, "torch": torch.__version__}
    if reason := _backend.unavailable_reason():
        return row | {"devices": [], "problem": reason}
    info = _backend.bindings().build_info()
    cache = _backend.bindings().cache_info(open=True)
    return row | {
        "LLVM": info["llvm"],
        "oneDNN": info["onednn"],
        "devices": ["lazy:0"],
        "CPU": info["cpu_name"],
        "threads": torch.get_num_threads(),
        "cache": cache["directory"],
        "cache_bytes": cache["bytes"],
    }


def _options_text() -> str:
    lines = ["environment variables (torch_ltc.config has the same options):"]
    if _backend.unavailable_reason():
        return f"{lines[0]}\n  the backend can't be loaded, so none is read"
    for option in _backend.bindings().config_options():
        default = option["default"]
        value = int(default) if isinstance(default, bool) else default
        lines.append(f"  {option['environment']}={value}")
        text = option["help"]
        if option["choices"]:
            text += f" One of: {', '.join(option['choices'])}."
        lines += textwrap.wrap(
            text, 78, initial_indent=" " * 6, subsequent_indent=" " * 6
        )
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    commands = "\n".join(f"  python -m {n:<22} {t}" for n, t in _COMMANDS.items())
    return argparse.ArgumentParser(
        prog="python -m torch_ltc",
        description="Versions, device 'lazy' and its cache.",
        epilog=f"other commands:\n{commands}\n\n{_options_text()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def main(arguments: list[str] | None = None) -> int:
    parser = _parser()
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    options = parser.parse_args(arguments)
    row = summary()
    if options.json:
        print(json.dumps(row, indent=2))
    else:
        for name, value in row.items():
            text = ", ".join(value) if isinstance(value, list) else value
            print(f"{name.replace('_', ' ') if name != 'torch_ltc' else name}: {text}")
    return 1 if row.get("problem") else 0


if __name__ == "__main__":
    sys.exit(main())
