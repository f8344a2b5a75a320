"""Configuration: the backend's options as typed attributes.

    torch_ltc.config.auto_step = False
    with torch_ltc.config(source_info=True, verify=True):
        ...
    print(torch_ltc.config.describe())

`describe` lists all options with their environment variables. The options are defined
once, in a table in C++ (ltc_backend/config).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch_ltc._backend import bindings


class Config:
    """The options as attributes; see `describe()`."""

    # Annotations for editors and type checkers; a test compares them with the C++ table.
    auto_step: bool
    defer_checks: bool
    accelerator: bool
    async_execution: bool
    max_steps_in_flight: int
    donation: bool
    cache_packed_weights: bool
    max_trace_ops: int
    reuse_traces: bool
    head_start: str
    varying_numbers: str
    varying_sizes: str
    check_collectives: bool
    source_info: bool
    verify: bool
    num_threads: int
    cache: bool
    cache_dir: str
    cache_size_mb: int
    max_loaded_programs: int
    cpu: str
    dump: str
    dump_inputs: bool
    dump_locations: bool
    max_inspectable_programs: int
    backend: str
    tier: str
    compile_failure: str
    force_compile_failure: str
    detect_nan: bool
    lockstep: bool
    lockstep_tolerance: str
    step_log_file: str
    profile_commands: bool
    force_fallback: str
    save_tensors_file: str
    save_tensors_format: str

    def __getattr__(self, name: str) -> bool | int | float | str:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return bindings().config_get(name)
        except ValueError as error:
            raise AttributeError(str(error)) from None

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            bindings().config_set(name, value)
        except ValueError as error:
            if name in self:
                raise
            raise AttributeError(str(error)) from None
        from torch_ltc._torch_patches import naming

        naming.refresh()

    def __contains__(self, name: object) -> bool:
        return any(option["name"] == name for option in bindings().config_options())

    def __dir__(self) -> list[str]:
        return ["describe", "options"] + [
            option["name"] for option in bindings().config_options()
        ]

    @contextmanager
    def __call__(self, **options: bool | int | float | str) -> Iterator[None]:
        """Sets options for a `with` block and restores their values afterwards. Raises
        AttributeError for an unknown option, ValueError for an invalid value."""
        saved = {name: getattr(self, name) for name in options}
        changed = []
        try:
            for name, value in options.items():
                setattr(self, name, value)
                changed.append(name)
            yield
            if options.get("profile_commands"):
                # The option is read when a step runs, so steps that were scheduled in the
                # block must finish in the block.
                bindings().wait_device_ops()
        finally:
            for name in reversed(changed):
                setattr(self, name, saved[name])

    def options(self) -> list[dict[str, Any]]:
        """Returns a row for each option: name, type, default, value, source, help,
        environment (variable), choices, effect ("none", "trace", "program" or "code")."""
        return bindings().config_options()

    def describe(self) -> str:
        """Returns a text table of all options, with their values and descriptions."""
        from torch_ltc._diagnostics.report import options_table

        return options_table(self.options())

    def __repr__(self) -> str:
        values = ", ".join(f"{o['name']}={o['value']!r}" for o in self.options())
        return f"torch_ltc.config({values})"


config = Config()
