"""Bindings of `ltc_backend`: the complete interface that the Python layer uses.

Private: users call the functions of `torch_ltc`, which add types, defaults and
documentation. Everything that can fail raises RuntimeError (ValueError for an invalid
option value) with a one-sentence message for the user. Functions that wait or compute
release the GIL. Times are seconds, sizes are bytes.

Importing the module has no effect on PyTorch; `initialize` registers the
backend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypedDict

import torch

OptionValue = bool | int | float | str

# -- life cycle ------------------------------------------------------------

def initialize() -> None:
    """Registers the device, the executor, the tracer and the fallback. Idempotent and
    cheap: loads neither MLIR nor the disk cache. An invalid environment value is
    reported through the log hook (or stored until there is one), and the default is
    used."""

def is_initialized() -> bool: ...
def is_in_bad_fork() -> bool:
    """Whether the process was forked from one that had run steps."""

class BuildInfo(TypedDict):
    version: str  # of torch_ltc
    torch: str  # compiled against, "2.13.0"
    llvm: str  # compiled against, "22.1.8"
    onednn: str  # in use at run time, "3.2.0"
    protobuf: str
    compiler: str  # "clang++ 22.1.8" or "g++ 12.2.0"
    cpu_name: str  # LLVM's name of the target CPU
    cpu_features: str

def build_info() -> BuildInfo: ...
def load_compiler() -> str:
    """Loads `mlir_lowering`'s library like the first compilation; returns its path."""

def register_new_custom_ops() -> None:
    """Registers kernels for ops outside aten that were defined since the last call and
    write to their arguments; tracing any op does so too."""

def pass_functionalization() -> None:
    """Makes ops on tensor subclasses, and on layouts that functionalization doesn't
    model, bypass functionalization."""

def is_our_kernel_at_functionalize(name: str) -> bool:
    """Whether an op ("namespace::name.overload") has one of those kernels."""

# -- steps -----------------------------------------------------------------

def mark_step(device: str = "", wait: bool = False) -> None:
    """Ends the step: schedules all live tensors of the calling thread."""

def run_traced_collectives(reader: str) -> None:
    """Runs what is traced up to the last collective and waits for it."""

def wait_device_ops() -> None:
    """Waits for everything scheduled; raises the error of a failed step."""

def wait_for_compilations() -> None:
    """Waits for background compilations."""

def sync_tensors(tensors: Sequence[torch.Tensor], wait: bool = True) -> None:
    """Computes exactly these tensors by one program. Not counted as an implicit
    sync."""

class AssumedTruth:
    """A bool that a check read before it was computed."""

    def value(self) -> bool | None:
        """None while no step has computed it."""

def begin_assuming() -> None:
    """From now on this thread assumes that results of `torch._is_all_true` are true."""

def end_assuming() -> list[AssumedTruth]:
    """Ends it; returns the assumed results."""

def adam_step(param_groups: list[dict], state: dict) -> bool | None:
    """Counts and traces a step of torch.optim.Adam or AdamW, one node for each
    parameter. Returns False and changes nothing if torch's implementation is needed
    (other devices, special options). Returns None if a parameter has no state yet."""

def memory_id(tensor: torch.Tensor) -> int:
    """Equal for tensors that share memory: a tensor and its views; 0 for one
    that has no views."""

def read_memory(tensor: torch.Tensor) -> torch.Tensor | None:
    """A CPU copy of the memory that a tensor and its views share; None if the elements
    of the tensor's base aren't all of it."""

def read_storage(storage: torch.UntypedStorage) -> torch.Tensor:
    """The same for a lazy tensor's storage; raises instead of returning None."""

def release_memory(tensor: torch.Tensor) -> None:
    """Drops the values in the memory of a lazy tensor, all of which is written before
    it is read again."""

def storage_address(storage: torch.UntypedStorage) -> int:
    """The address of the computed values of a lazy tensor's storage; unique for each
    storage, 0 for one without elements. Valid until the next write or end of a step."""

def host_view(tensor: torch.Tensor) -> torch.Tensor | None:
    """A CPU tensor on the memory of a lazy tensor's current value, which no step
    overwrites during its lifetime; it must not be written. None if the memory isn't in
    the order of the tensor's strides."""

def mark_read_only(capsule: object) -> None:
    """Sets the read-only flag of an unused DLPack capsule of version 1."""

def prepare_autocast() -> None:
    """Registers the autocast kernels of lazy tensors, unless they are registered."""

def lock_keys() -> int:
    """The key of all lazy tensors that ops fall through, as a DispatchKeySet's raw_repr."""

def clear_autocast_cache() -> None:
    """Clears the cache of parameter casts of `torch.autocast("lazy")`."""

def pending_ops() -> int:
    """Traced and not yet scheduled ops of the calling thread's live tensors."""

def call_eagerly(name: str, reason: str, *args: Any, **kwargs: Any) -> Any:
    """Runs an op ("aten::add.Tensor") as a fallback, below autograd and
    functionalization: its lazy tensors have no functional wrappers."""

def check_unchecked_operands(name: str, *args: Any, **kwargs: Any) -> None:
    """Raises an error if the op's CPU kernel would read outside of these operands."""

def remember_formulas(ops: list[str]) -> None:
    """Runs the formulas in Python of these ops once for each kind of operands."""

# -- captured steps ----------------------------------------------------------

class Recording:
    """Records what this thread's step reads, draws and computes, from construction to
    `close()`. `arguments`: the call's tensors, lazy or on the CPU."""

    def __init__(self, arguments: Sequence[torch.Tensor]) -> None: ...
    def close(self) -> None: ...
    @property
    def runs(self) -> int:
        """Number of executions; a step that can be captured has one."""
    @property
    def program(self) -> str:
        """Hash of the last one's program."""
    @property
    def draws(self) -> int:
        """Number of random draws."""
    def drawn(self) -> list[tuple[int, str]]:
        """`data_key` and distribution ("bernoulli(0.5)") of random numbers that are
        still referenced."""
    @property
    def reads_cpu_values(self) -> bool:
        """Whether it read a number from a CPU tensor that is an argument, was derived
        from one, or was drawn."""
    @property
    def scalars(self) -> list[float]:
        """Its dynamic scalars."""

def capture_marks() -> tuple[object, object]:
    """Placeholders in a node's values: not compared, and missing."""

def tensor_marks(tensor: torch.Tensor) -> tuple[Any, ...]:
    """requires_grad, version if it is on the CPU, gradient, number of hooks."""

def first_changed(nodes: tuple[Any, ...]) -> int:
    """The index of the first node (_capture/objects.py) that has changed, or -1."""

def surroundings() -> bytes:
    """Modes of PyTorch and options that affect ops."""

def is_under_a_dispatch_mode() -> bool:
    """Whether a TorchDispatchMode or a transform of torch.func is active."""

class CapturedStep:
    """A replayable program, created from the recordings of two consecutive steps.
    `known`: tensors, with names, that hold state and constants; `arguments`, `returned`:
    the second step's tensors; `step_counts`: CPU float32 tensors of rank 0 that each
    replay increments. Raises RuntimeError with a reason."""

    def __init__(
        self,
        first: Recording,
        second: Recording,
        arguments: Sequence[torch.Tensor],
        known: Sequence[tuple[torch.Tensor, str]],
        returned: Sequence[torch.Tensor],
        step_counts: Sequence[torch.Tensor],
    ) -> None: ...
    def bind_scalar(self, scalar: int, expression: int) -> None:
        """Scalar `scalar` is value `expression` of each replay."""
    @property
    def program(self) -> str: ...
    def replay(
        self, arguments: Sequence[torch.Tensor], values: Sequence[float]
    ) -> tuple[str, list[torch.Tensor]]:
        """The reason why it can't be replayed ("" if it was), and the results."""

# -- configuration: the one table ------------------------------------------

class Option(TypedDict):
    name: str  # an identifier: "auto_step"
    type: str  # "bool" | "int" | "float" | "str"
    default: OptionValue
    value: OptionValue
    source: str  # "default" | "environment" | "program"
    help: str  # one sentence
    environment: str  # "TORCH_LTC_AUTO_STEP"
    choices: list[str]  # allowed values of a "str", [] if any
    effect: str

def config_options() -> list[Option]:
    """Rows in the table's order. The Python layer relies on these names:

    auto_step bool True           a step ends at optimizer.step()
    defer_checks bool True        checks of torch.distributions are traced
    async_execution bool True     steps run on the worker thread
    donation bool True            buffers of dead parameters are reused
    max_trace_ops int             the graph is cut, with a message, beyond it
    varying_numbers str auto      numbers that differ become parameters: auto | off
    varying_sizes str off         one program for sizes that differ: auto | off
    check_collectives bool False  ranks compare each collective before it begins
    source_info bool False        user file, line and module path on every op
    verify bool False             MLIR's verifier between passes
    backend str ""                registered backend, "" for our compiler
    num_threads int 0             0: torch.get_num_threads()
    cache bool True               programs and kernels on disk
    cache_dir str                 "": a folder of the user's cache directory
    cache_size_mb int 2048        0: no limit
    cpu str ""                    target CPU, "" for this machine's (TORCH_LTC_CPU)
    dump str ""                   folder for dumps (TORCH_LTC_DUMP)
    dump_locations bool True      loc(...) in dumped text, with source_info
    keep_programs int 16          last compiled programs whose stages can be
                                  asked for by `program_text`
    compile_failure str interpret  interpret | raise
    force_compile_failure str ""  ops whose programs are refused, as force_fallback
    detect_nan bool False         raise at the first NaN or Inf
    step_log_file str ""          a JSON line for each execution
    profile_commands bool False   time each command of each run
    force_fallback str ""         one op that falls back (LTC_FORCE_FALLBACK)
    save_tensors_file str ""      LTC_SAVE_TENSORS_FILE
    save_tensors_format str text  LTC_SAVE_TENSORS_FMT: text | dot | backend
    """

def config_get(name: str) -> OptionValue: ...
def config_set(name: str, value: OptionValue) -> None:
    """A str value is parsed as from the environment. ValueError: unknown
    name (with the nearest one), wrong type or value."""

# -- metrics ---------------------------------------------------------------

def counters() -> dict[str, int]:
    """Counts since the start or `reset_metrics`, for each counter of
    ltc_backend/events/metrics.def."""

class Timer(TypedDict):
    count: int
    total: float
    last: float
    median: float  # of the last 1024 samples
    p90: float

def timers() -> dict[str, Timer]:
    """For each timer of metrics.def."""

def reset_metrics() -> None:
    """Counters, timers, logs; not the caches."""

class CallLogEntry(TypedDict):
    op: str  # "aten::sort"
    location: str  # "train.py:31", "" if unknown
    calls: int
    seconds: float
    bytes: int  # moved to and from the fallback
    syncs: int  # executions that the calls had to wait for
    reason: str  # "not in the op table", "forced", ...

def fallback_log() -> list[CallLogEntry]: ...

class SyncEntry(TypedDict):
    op: str  # what asked for the value: "aten::_local_scalar_dense"
    location: str
    calls: int
    seconds: float
    ops: int  # traced ops that were cut off, over all calls

def sync_log() -> list[SyncEntry]: ...

class CompileEntry(TypedDict):
    program: str  # hash, hexadecimal: the program's name everywhere
    step: int  # number of the step that needed it, from 1
    origin: str  # "compiled" | "disk" | "bound" | "interpreted" | "refused"
    reason: str  # "first program", what differs from the nearest program, or
    # why it can't be compiled
    location: str  # of the call that ended the step
    seconds: float  # total, without the run
    expected_seconds: float  # of a compilation, before it began
    stage_seconds: dict[str, float]  # by stage: torch linalg kernels llvm
    ops: int
    kernels: int
    kernels_compiled: int
    commands: int
    parameters: int
    outputs: int
    arena_bytes: int
    dump_directory: str  # "" if not dumped
    undonated: list[tuple[str, str]]  # parameter not overwritten, why
    varying: list[str]  # numbers that became parameters for it
    sizes: list[
        str
    ]  # that vary between programs of the same ops (option varying_sizes)

def compile_log() -> list[CompileEntry]:
    """Oldest first; the last 1024."""

class StepEntry(TypedDict):
    step: int
    program: str
    origin: str  # "memory" | "disk" | "compiled" | "bound" | "interpreted"
    trigger: str  # "mark_step" | "sync" | "cut"
    ops: int
    schedule_seconds: float
    execute_seconds: float  # -1 while it runs
    donated: int
    time: float  # since 1970, when it was scheduled
    live_tensors: int  # of the process, then
    allocated_bytes: int

def step_log() -> list[StepEntry]:
    """Oldest first; the last 1024 executions."""

# -- what a program looks like ---------------------------------------------

#: Name, file in a dump folder, and what it is, of each stage.
STAGES: tuple[tuple[str, str, str], ...]

def tensor_text(tensors: Sequence[torch.Tensor], stage: str) -> str:
    """The pending graph of the tensors at a stage, without running it. A tensor
    with no pending graph is a parameter that is returned."""

def program_text(program: str, stage: str) -> str:
    """The same for a program of `compile_log` (one of the last
    `keep_programs`, also if it came from the disk)."""

class TensorRow(TypedDict):
    role: str  # "input" | "output"
    index: int
    name: str  # parameter name, "" if unknown
    dtype: str
    sizes: list[int]
    bytes: int
    donated: bool  # input: overwritten; output: in an input's buffer

def program_tensors(program: str) -> list[TensorRow]: ...

class CommandRow(TypedDict):
    name: str
    location: str
    module: str
    results: str
    calls: int
    seconds: float  # total; 0.0 unless config `profile_commands`

def program_commands(program: str) -> list[CommandRow]: ...
def set_tensor_name(tensor: torch.Tensor, name: str) -> None:
    """Name of a parameter in dumps and messages; survives in-place updates."""

def tensor_name(tensor: torch.Tensor) -> str: ...
def mark_size(
    tensor: torch.Tensor, dim: int, is_dynamic: bool, least: int, most: int
) -> bool:
    """Whether it could be marked: the value is computed by a scheduled step."""

def tensor_origin(tensor: torch.Tensor) -> str:
    """Line that created the value ("train.py:12"); "" without `source_info`, or if it
    is pending."""

def current_line() -> str:
    """The user's innermost line: "train.py:12"."""

def enter_module(module: torch.nn.Module, /) -> None:
    """Ops traced by this thread get the module's path ("encoder.layer.0") until
    `leave_module`; around each call while `source_info` is on."""

def leave_module() -> None: ...
def leave_all_modules() -> None:
    """For the calling thread."""

def set_paths_below(
    function: Callable[[torch.nn.Module], dict[torch.nn.Module, str]],
) -> None:
    """Sets the function that returns the modules of an outermost one and their paths,
    for `enter_module`."""

# -- programs for other compilers ------------------------------------------

class ProgramTensorRow(TypedDict):
    dtype: str
    sizes: list[int]
    name: str  # "" if unknown
    donatable: bool  # inputs only
    data: int  # inputs only: `data_key` of what it was traced with, 0 if unknown
    parameter: int  # outputs only: the input that it is, -1 if it is computed

class TracedProgram:
    """A graph, and the values with which it was traced, if they are known."""

    name: str  # hash, hexadecimal
    entry: str  # name of the function in each stage
    output_of_tensor: list[int]  # of `pending_program`: place among the outputs
    def inputs(self) -> list[ProgramTensorRow]: ...
    def outputs(self) -> list[ProgramTensorRow]: ...
    def scalars(self) -> list[tuple[str, float | None]]:
        """ "int" or "float", and the value that it was traced with."""
    def input_tensor(self, index: int) -> torch.Tensor:
        """CPU copy of the input's value in the trace."""
    def text(self, stage: str, legal_ops: Sequence[str], locations: bool) -> str:
        """MLIR at "torch-raw", "torch" or "linalg" (without library calls)."""
    def bytecode(self, stage: str, legal_ops: Sequence[str]) -> bytes: ...
    def ir(self) -> str: ...
    def dot(self) -> str: ...
    def dump(self) -> None:
        """Writes it to the folder of option `dump`, once."""

def pending_program(tensors: Sequence[torch.Tensor]) -> TracedProgram:
    """The program that `sync_tensors` would run."""

def kept_program(name: str) -> TracedProgram:
    """One of the last `keep_programs`, without values."""

class GeneralGraph:
    """Programs that only differ in sizes, as one with symbols. Raises RuntimeError if
    there is no common one."""

    name: str  # hash, hexadecimal
    def __init__(self, programs: Sequence[TracedProgram]) -> None: ...
    def parameter_sizes(self) -> list[tuple[int, int, str]]:
        """Input, dim and expression ("s0", "2*s0 + 1") of each size that varies."""
    def symbols(self) -> list[str]: ...
    def text(self) -> str: ...
    def bind(self, program: TracedProgram) -> tuple[list[int] | None, str]:
        """The symbols' values at which it is `program`, or the reason why it never is."""
    def instantiate(self, values: Sequence[int], name: str) -> TracedProgram: ...
    def stand_ins(self) -> list[list[int]]:
        """Values at which a compiler may look at it."""
    def refine(self, program: TracedProgram) -> GeneralGraph: ...

class SymbolicProgram:
    """A general graph as one module for all sizes. Raises RuntimeError, with the op and
    its line, if a number is no known function of the sizes."""

    def __init__(
        self,
        general: GeneralGraph,
        ranges: Sequence[tuple[str, int, int]],
        stage: str,
        legal_ops: Sequence[str],
        bytecode: bool,
    ) -> None:
        """`ranges`: name, least and largest value of each symbol; default: s0, ..."""
    def symbols(self) -> list[tuple[str, int, int]]: ...
    def module(self) -> bytes: ...
    def parameters(self) -> list[int]:
        """Symbols whose values are arguments, after all others."""
    def problem_at(self, values: Sequence[int]) -> str:
        """Why it isn't valid at these values of the symbols; "" if it is."""

def specialize_module(module: str, sizes: Sequence[tuple[str, int]]) -> str:
    """The text of a symbolic program at certain values of its symbols."""

def skeleton(program: TracedProgram) -> str:
    """Equal for programs that only differ in sizes and integers that may follow them."""

def data_key(tensor: torch.Tensor) -> int:
    """Identity of a lazy tensor's value in memory; 0 if it is pending."""

# -- backends in Python ----------------------------------------------------

def register_backend(
    name: str,
    compile: Callable[
        [TracedProgram],
        Callable[[list[torch.Tensor], list[float], list[torch.Tensor]], None],
    ],
    unsupported_ops: Sequence[str],
    legal_ops: Sequence[str],
    compile_general: Callable[
        [GeneralGraph],
        str
        | tuple[
            SymbolicProgram,
            Callable[[list[torch.Tensor], list[float], list[torch.Tensor]], None],
        ],
    ]
    | None = None,
) -> None:
    """Registers a value of option `backend`. The function that `compile` returns gets
    inputs, scalars and the memory of the outputs; so does that of `compile_general`,
    for any sizes, unless it returns why there is none. The message of an exception is
    shown to the user."""

def remove_backend(name: str) -> None: ...
def set_first_tensor_hook(hook: Callable[[], None]) -> None:
    """`hook` runs before the first lazy tensor is created. It must be idempotent: each
    thread that creates a tensor meanwhile calls it."""

def set_backend_finder(finder: Callable[[str], None]) -> None:
    """Sets the function that is called with an unregistered name, and registers it or
    raises."""

class Executable:
    """A compiled module that runs on contiguous CPU tensors."""

    num_scalars: int
    def inputs(self) -> list[ProgramTensorRow]: ...
    def outputs(self) -> list[ProgramTensorRow]: ...
    def run(
        self,
        inputs: Sequence[torch.Tensor],
        scalars: Sequence[float],
        outputs: Sequence[torch.Tensor],
    ) -> None: ...

def compile_module(module: bytes) -> Executable:
    """MLIR text or bytecode with one function, torch dialect or linalg."""

def bind_executable(program: TracedProgram) -> Executable | None:
    """The program for all sizes of earlier ones that differ from it only in sizes,
    bound to its sizes; None if there is none."""

# -- caches, memory --------------------------------------------------------

class CacheInfo(TypedDict):
    directory: str  # "" when the disk isn't used
    writable: bool
    problem: str  # why it isn't writable, "" otherwise
    bytes: int  # 0 until the first program opens the cache, like all counts here
    max_bytes: int
    memory_hits: int
    disk_hits: int
    misses: int
    stores: int
    evictions: int
    rejected: int

def cache_info(open: bool = False) -> CacheInfo:
    """`open`: opens the cache, which loads the runtime, if no program has yet."""

def clear_program_memory() -> None:
    """Clears the in-memory program cache (not the disk cache)."""

def memory_stats() -> dict[str, int]:
    """allocated_bytes, peak_allocated_bytes (tensors' host buffers), arena_bytes
    (shared by all programs), kept_weight_bytes (packed copies), live_tensors,
    pending_ops."""

def reset_peak_memory_stats() -> None: ...

# -- messages --------------------------------------------------------------

def set_log_hook(hook: Callable[[int, str], None] | None) -> None:
    """`hook(level, sentence)` with the levels of Python's logging; may be called from
    any thread, with the GIL held. Messages before the first hook are stored and passed
    to it. None: messages from WARNING on go to stderr."""

# -- guards ------------------------------------------------------------------

def enter_guard(kind: str) -> None:
    """Makes "sync", "fallback" or "recompile" raise from now on, for the whole
    process."""

def leave_guard(kind: str) -> None: ...
