"""./dev: prepares as much of the environment as a command needs, and runs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import check_torch
import checks
import completion
import docs_site
import environment
import release
import sanitize
from environment import PYTHON
from steps import ROOT, StepFailed, exclusive, say

import build

HELP = """\
Usage: ./dev COMMAND [ARGUMENTS]

  build              system packages, virtual environment, build, install
  train [ARGS]       train a convolutional network on device "lazy"
                     (examples/train_digits.py; --help lists its options)
  test [--full] [SUITES] [-- ARGS]
                     all tests, or some of: {suites}
  sanitize [address|thread] [--sample|--python]
                     the runtime's tests and end-to-end tests in builds with
                     sanitizers; a sample of the former, or only the latter
  bench [ARGS]       training steps of lazy and its peers
  python ARGS        the environment's Python with the package in it
  lint [--fix]       formatting, Python checks, house rules
  wheel [--target=aarch64]
                     a wheel in dist/ that needs nothing but torch, for this
                     processor or for AArch64 (cross-compiled)
  release [VERSION] [--python=PATH] [--target=aarch64]
                     wheel, source distribution, notes and digests: dist/. The
                     wheel is tried in minimal Debian root file systems and
                     with other Pythons (needs root and debootstrap). With
                     --target, AArch64's wheel is built and tried, too
  docs               the documentation as a site with search: .dev/site
  check-torch VERSION
                     what another version of torch changes for this package
  doctor             checks what is installed and whether it is compatible
  tools              ltc-opt, ltc-run, ltc-reduce, ltc-lsp-server: build/bin
  setup              only system packages and virtual environment, with the
                     packages of tests and benchmarks
  peers              environments of other projects that tests use where they
                     are installed: {peers}
  completion         a script for bash: source <(./dev completion)
  help               this text

Each command first does the setup, build and install that it needs. Finished steps
aren't repeated. Logs: .dev/logs. Start afresh: rm -r .dev .venv build
"""


def _become(*command: str) -> int:
    """Replaces this process by the command, which then gets signals and sets the exit
    code."""
    os.execve(command[0], list(command), {**os.environ, **environment.environment()})


def _python(arguments: Sequence[str], tests: bool = False) -> int:
    build.build(tests)
    return _become(str(PYTHON), *arguments)


def _test(arguments: Sequence[str]) -> int:
    arguments = list(arguments)
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    names, extra = arguments[:cut], arguments[cut + 1 :]
    full = "--full" in names
    return checks.run_suites([n for n in names if n != "--full"], extra, full)


def _lint(arguments: Sequence[str]) -> int:
    build.prepare_environment(tests=True)
    return _become(str(PYTHON), str(ROOT / "tools" / "lint"), *arguments)


def _build(arguments: Sequence[str]) -> int:
    build.build()
    say("built and installed: try './dev train'")
    return 0


def _tools(arguments: Sequence[str]) -> int:
    build.build(tests=True)
    say("built: build/bin")
    return 0


def _setup(arguments: Sequence[str]) -> int:
    build.prepare_environment(tests=True)
    return 0


def _peers(arguments: Sequence[str]) -> int:
    with exclusive("setup"):
        for peer in environment.PEERS:
            environment.peer_environment(peer)
            say(f"{peer.name}: {peer.variable}={peer.python}")
    return 0


def _completion(arguments: Sequence[str]) -> int:
    suites = [suite.name for suite in checks.SUITES]
    print(completion.script([n for n in COMMANDS if n[0] != "-"], suites), end="")
    return 0


def _wheel(arguments: Sequence[str]) -> int:
    if not arguments:
        build.wheel()
    elif list(arguments) == ["--target=aarch64"]:
        build.aarch64_wheel()
    else:
        raise StepFailed("usage: ./dev wheel [--target=aarch64]")
    return 0


def _release(arguments: Sequence[str]) -> int:
    release.release(arguments)
    return 0


def _help(arguments: Sequence[str]) -> int:
    names = ", ".join(suite.name for suite in checks.SUITES)
    peers = ", ".join(peer.name for peer in environment.PEERS)
    print(HELP.format(suites=names, peers=peers), end="")
    return 0


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "build": _build,
    "train": lambda arguments: _python(
        [str(ROOT / "examples" / "train_digits.py"), *arguments]
    ),
    "test": _test,
    "bench": lambda arguments: _python(
        [str(ROOT / "benchmarks" / "bench.py"), *arguments], tests=True
    ),
    "python": _python,
    "lint": _lint,
    "sanitize": sanitize.sanitize,
    "wheel": _wheel,
    "release": _release,
    "check-torch": check_torch.check_torch,
    "docs": docs_site.docs,
    "doctor": lambda arguments: _python(["-m", "torch_ltc.doctor", *arguments]),
    "tools": _tools,
    "setup": _setup,
    "peers": _peers,
    "completion": _completion,
    "help": _help,
    "-h": _help,
    "--help": _help,
}


def main(arguments: Sequence[str]) -> int:
    name = arguments[0] if arguments else "help"
    command = COMMANDS.get(name)
    if command is None:
        say(f"there is no command '{name}'; './dev help' lists them")
        return 2
    try:
        return command(arguments[1:])
    except StepFailed as failure:
        say(str(failure))
        return 1
    except KeyboardInterrupt:
        say("interrupted; the same call resumes here")
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
