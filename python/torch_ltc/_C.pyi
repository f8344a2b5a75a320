"""Bindings of `ltc_backend`: the complete interface that the Python layer uses.

Private: users call the functions of `torch_ltc`, which add types, defaults and
documentation. A function that fails raises RuntimeError (ValueError for an invalid
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
    """Whether the process was forked from a process that had run steps."""

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
    """Loads `mlir_lowering`'s library, as the first compilation does; returns its path."""

def register_new_custom_ops() -> None:
    """Registers kernels at key Functionalize for ops outside aten that were defined since
    the last call and write to their arguments. Tracing any op does this, too."""

def pass_functionalization() -> None:
    """Makes ops on tensor subclasses, and on layouts that functionalization doesn't
    model, bypass functionalization."""

def set_fake_keys(tensor: torch.Tensor) -> None:
    """Replaces the keys of device lazy in a fake tensor by those of the device whose
    autocast lazy tensors use: no kernels are registered for that device, and torch's
    functionalization (2.13) doesn't compute the metadata of views by kernels that reject
    symbolic sizes."""

def is_our_kernel_at_functionalize(name: str) -> bool:
    """Whether an op ("namespace::name.overload") has a kernel at key Functionalize that
    `register_new_custom_ops` registered."""

# -- steps -----------------------------------------------------------------

def mark_step(device: str = "", wait: bool = False) -> None:
    """Ends the step: schedules all live tensors of the calling thread."""

def run_traced_collectives(reader: str) -> None:
    """Runs the ops traced so far and waits for them, if they include a collective: other
    ranks may need the collective to reach the event that `reader` is about to wait for."""

def wait_device_ops() -> None:
    """Waits for all scheduled steps; raises the error of a failed step."""

def wait_for_compilations() -> None:
    """Requests the compilation of all loaded programs and waits for it."""

def sync_tensors(tensors: Sequence[torch.Tensor], wait: bool = True) -> None:
    """Computes exactly these tensors by one program. This isn't counted as an implicit
    sync."""

class AssumedTruth:
    """The result of a check that was assumed to be true before it was computed."""

    def value(self) -> bool | None:
        """The computed result; None until a step has computed it, True if that step
        failed."""

def begin_assuming() -> None:
    """Makes this thread assume from now on that results of `torch._is_all_true` are
    true."""

def end_assuming() -> list[AssumedTruth]:
    """Ends `begin_assuming` and returns the results that were assumed since."""

def set_failed_check_hook(hook: Callable[[], None]) -> None:
    """Sets the function that is called when this thread reads a value and one of its assumed
    results is false. It raises the check's error."""

def adam_step(param_groups: list[dict], state: dict) -> bool | None:
    """Traces a step of torch.optim.Adam or AdamW as one node for each parameter, and
    increments the step counts. Returns False and changes nothing if torch's implementation
    is needed (for example, because of option `amsgrad`). Returns None if a parameter has no
    state."""

def memory_id(tensor: torch.Tensor) -> int:
    """Returns an id of the memory that a tensor shares with its views; 0 for a tensor
    without a functional wrapper, which has no views."""

def read_memory(tensor: torch.Tensor) -> torch.Tensor | None:
    """Returns a CPU copy of the memory that a tensor and its views share; None if the
    elements of the base don't cover all of the memory."""

def read_storage(storage: torch.UntypedStorage) -> torch.Tensor:
    """Returns a CPU copy of a lazy tensor's storage. Raises RuntimeError if the elements
    of the base don't cover all of its memory."""

def exchange_tensors(first: torch.Tensor, second: torch.Tensor) -> None:
    """Exchanges the C++ objects of two tensors, to which weak references may exist."""

def remove_tensor_name(tensor: torch.Tensor) -> None:
    """Removes the name that `set_tensor_name` gave the tensor."""

def assign_data(tensor: torch.Tensor, value: torch.Tensor) -> None:
    """Makes a lazy tensor share the memory of `value`. Raises RuntimeError where an
    assignment of `tensor.data` does."""

def release_memory(tensor: torch.Tensor) -> None:
    """Releases the values of a lazy tensor and of its base. The caller must write all of
    that memory before reading it again."""

def resize_storage(storage: torch.UntypedStorage, size: int) -> bool:
    """Resizes a lazy tensor's storage to 0 bytes, which releases its values, or back to its
    full size. Returns False for any other size, and does nothing."""

def storage_address(storage: torch.UntypedStorage) -> int:
    """Computes the values of a lazy tensor's storage and returns their address, which is
    unique for each storage; 0 if the storage is empty. The address is valid until the next
    write or end of a step."""

def host_view(tensor: torch.Tensor) -> torch.Tensor | None:
    """Returns a CPU tensor, which must not be written, on the memory of a lazy tensor's
    current value. No step overwrites this memory while the CPU tensor lives. Returns None
    if the value isn't stored in the order of the tensor's strides."""

def mark_read_only(capsule: object) -> None:
    """Sets the read-only flag of an unused DLPack capsule of version 1."""

def prepare_autocast() -> None:
    """Registers the autocast kernels of lazy tensors; does nothing after the first call."""

def lock_keys() -> int:
    """Returns the raw_repr of the DispatchKeySet with the dispatch key that serializes ops
    on lazy tensors as soon as a second thread traces (locked_ops.cpp)."""

def clear_autocast_cache() -> None:
    """Clears the cache of parameter casts of `torch.autocast("lazy")`."""

def pending_ops() -> int:
    """Returns the number of traced, not yet scheduled ops of the calling thread's live
    tensors."""

def call_eagerly(name: str, reason: str, *args: Any, **kwargs: Any) -> Any:
    """Runs an op ("aten::add.Tensor") as a fallback, below autograd and
    functionalization: lazy tensors among the arguments have no functional wrappers."""

def check_unchecked_operands(name: str, *args: Any, **kwargs: Any) -> None:
    """Raises an error if the op's CPU kernel would read outside of these operands."""

def remember_formulas(ops: list[str]) -> None:
    """Makes the Python formulas of these ops ("aten::trace") run only once for arguments
    with equal sizes, dtypes and numbers; later calls repeat the ops that the formula
    traced."""

# -- captured steps ----------------------------------------------------------

class Recording:
    """Records what this thread's step reads, draws and computes, from construction to
    `close()`. `arguments`: the tensors of the captured call, lazy or on the CPU."""

    def __init__(self, arguments: Sequence[torch.Tensor]) -> None: ...
    def close(self) -> None: ...
    @property
    def runs(self) -> int:
        """Number of executions; a step that can be captured has one."""
    @property
    def program(self) -> str:
        """Hash of the last execution's program."""
    @property
    def draws(self) -> int:
        """Number of random draws."""
    def drawn(self) -> list[tuple[int, str]]:
        """Returns `data_key` and distribution ("bernoulli(0.5)") of each draw whose
        random numbers are still referenced."""
    @property
    def first_read(self) -> str:
        """The first op that read the value of a lazy tensor, and its Python line; "" if
        none did."""
    @property
    def reads_cpu_values(self) -> bool:
        """Whether the step read a number from a CPU tensor that is an argument, is
        derived from an argument, or was drawn."""
    @property
    def scalars(self) -> list[float]:
        """The values of the program's dynamic scalars."""
    @property
    def integers(self) -> list[int]:
        """The integers of the program that may vary between sizes."""
    @property
    def skeleton(self) -> str:
        """Hash of the program without the numbers that may vary; "" if none ran."""
    @property
    def data(self) -> StepData: ...
    def note_sizes_read(self, tensor: torch.Tensor) -> int:
        """Records that Python reads the sizes of `tensor`; returns a number for
        `size_source`."""
    def size_source(self, source: int) -> tuple[str, int, int] | None:
        """After the execution: ("argument", index, 0) or ("value", node, result), or None
        if the tensor is neither an argument nor a value of the program."""

class StepData:
    """References to the data that a step read and computed."""

class GeneralStep:
    """The program for all sizes of which a recorded program is an instance."""

    @staticmethod
    def of(recording: Recording) -> GeneralStep | None: ...
    @property
    def name(self) -> str: ...
    def quantities(self, recording: Recording) -> list[int]:
        """The varying sizes and products of sizes in the recorded program."""
    def symbols(self, recording: Recording) -> list[int]:
        """The values of the program's symbols in the recorded program."""
    def quantity(self, node: int, result: int, dim: int) -> int | None:
        """The number of the quantity that a size is; None for a constant."""

MAX_CONSTANT_BYTES: int

def capture_marks() -> tuple[object, object]:
    """Returns two placeholders for a node's values: one for a value that isn't compared,
    one for a value that is missing."""

def tensor_marks(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Returns (requires_grad, version, gradient or None, number of hooks); the version is
    -1 for inference tensors and for tensors that aren't on the CPU."""

def first_changed(nodes: tuple[Any, ...]) -> int:
    """Returns the index of the first node (_capture/objects.py) that has changed, or -1."""

def set_traced_types(of_int: type, of_float: type) -> None:
    """Sets the classes of traced numbers (_capture/traced_sizes.py)."""

def watch_operands(operands: list[type], created: list[type], is_on: bool) -> None:
    """Starts or ends to call traced numbers that the C code of built-in types would read:
    as operands and indices of all types, and as arguments of the constructors of `created`.
    Each call must have the same types. Raises ValueError for too many types."""

def surroundings() -> bytes:
    """Returns, as bytes for comparison, the modes of PyTorch and the options that affect
    which ops a function traces."""

def is_under_a_dispatch_mode() -> bool:
    """Whether a TorchDispatchMode or a transform of torch.func is active."""

class CapturedStep:
    """A replayable program, created from the data of a step and the recording of the next.
    `known`: tensors, with names, that hold state and constants; `arguments`, `returned`:
    the second step's tensors; `step_counts`: CPU float32 tensors of rank 0 that each
    replay increments; `general`: the second step's program for all sizes. Raises
    RuntimeError with the reason if the step can't be replayed."""

    def __init__(
        self,
        first: StepData,
        second: Recording,
        arguments: Sequence[torch.Tensor],
        known: Sequence[tuple[torch.Tensor, str]],
        returned: Sequence[torch.Tensor],
        step_counts: Sequence[torch.Tensor],
        general: GeneralStep | None,
    ) -> None: ...
    def bind_scalar(self, scalar: int, expression: int) -> None:
        """Makes each replay set the dynamic scalar with index `scalar` to the element
        with index `expression` of its `values`."""
    @property
    def program(self) -> str: ...
    def last_data(self) -> StepData: ...
    def select_sizes(self, arguments: Sequence[torch.Tensor]) -> bool:
        """Selects the program for the sizes of the arguments; False if there is none."""
    def add_sizes(
        self, arguments: Sequence[torch.Tensor], symbols: Sequence[int | None]
    ) -> str:
        """Adds and selects a program for the sizes of the arguments. `symbols`: values of
        symbols that these sizes don't determine. Returns "" or why there is no program."""
    @property
    def quantities(self) -> list[int]:
        """`GeneralStep.quantities` at the selected sizes."""
    @property
    def integers(self) -> list[int]:
        """`Recording.integers` at the selected sizes."""
    def replay(
        self, arguments: Sequence[torch.Tensor], values: Sequence[float]
    ) -> tuple[str, list[torch.Tensor]]:
        """Replays the step. Returns "" and the results, or the reason why the step can't be
        replayed."""

# -- configuration ---------------------------------------------------------

class Option(TypedDict):
    name: str  # an identifier: "auto_step"
    type: str  # "bool" | "int" | "str"
    default: OptionValue
    value: OptionValue
    source: str  # "default" | "environment" | "program"
    help: str  # one sentence
    environment: str  # "TORCH_LTC_AUTO_STEP"
    choices: list[str]  # allowed values of a "str"; [] if all are allowed
    effect: str

def config_options() -> list[Option]:
    """Returns a row for each option, in the order of ltc_backend/config/config.def."""

def config_get(name: str) -> OptionValue: ...
def config_set(name: str, value: OptionValue) -> None:
    """Sets an option. A str value is parsed like an environment variable. Raises
    ValueError for an unknown name (the message contains the nearest), a wrong type or a
    wrong value."""

# -- metrics ---------------------------------------------------------------

def counters() -> dict[str, int]:
    """Returns the value of each counter of ltc_backend/events/metrics.def since the start
    or the last `reset_metrics`."""

class Timer(TypedDict):
    count: int
    total: float
    last: float
    median: float  # of the last 1024 samples
    p90: float

def timers() -> dict[str, Timer]:
    """Returns a row for each timer of metrics.def."""

def reset_metrics() -> None:
    """Clears counters, timers and logs, but no caches."""

class CallLogEntry(TypedDict):
    op: str  # "aten::sort"
    location: str  # "train.py:31", "" if unknown
    calls: int
    seconds: float
    bytes: int  # moved to and from the fallback
    syncs: int  # executions that the calls waited for
    reason: str  # "not in the op table", "forced", ...

def fallback_log() -> list[CallLogEntry]: ...

class SyncEntry(TypedDict):
    op: str  # the op that read the value: "aten::_local_scalar_dense"
    location: str
    calls: int
    seconds: float
    ops: int  # traced ops that were pending, summed over all calls

def sync_log() -> list[SyncEntry]: ...

class CompileEntry(TypedDict):
    program: str  # hash, hexadecimal: the program's name everywhere
    step: int  # number of the steps that had ended; 0 before the first end
    origin: str  # "compiled" | "disk" | "bound" | "interpreted" | "rejected"
    reason: str  # "first program", the difference from the nearest program, or
    # why the program can't be compiled
    location: str  # of the call that ended the step
    seconds: float  # total, without the run
    expected_seconds: float  # estimate, made before the compilation began
    stage_seconds: dict[str, float]  # by stage: torch linalg kernels llvm
    ops: int
    kernels: int
    kernels_compiled: int
    commands: int
    parameters: int
    outputs: int
    arena_bytes: int
    dump_directory: str  # "" if not dumped
    undonated: list[tuple[str, str]]  # parameter that isn't donated, and why
    varying: list[str]  # varying numbers, which are dynamic scalars of this program
    sizes: list[
        str
    ]  # sizes that vary between programs of the same ops (option varying_sizes)

def compile_log() -> list[CompileEntry]:
    """Returns a row for each of the last 1024 programs that were interpreted, loaded, bound,
    compiled or rejected, oldest first."""

class StepEntry(TypedDict):
    step: int
    program: str
    origin: str  # "memory" | "disk" | "compiled" | "bound" | "interpreted" | "captured"
    trigger: str  # "mark_step" | "sync" | "cut" | "capture"
    ops: int
    schedule_seconds: float
    execute_seconds: float  # -1 while it runs
    donated: int
    time: float  # when it was scheduled, in seconds since 1970
    live_tensors: int  # of the process at that time
    allocated_bytes: int

def step_log() -> list[StepEntry]:
    """Returns the rows of the last 1024 executions, oldest first."""

# -- what a program looks like ---------------------------------------------

#: Name, file in a dump folder, and description of each stage.
STAGES: tuple[tuple[str, str, str], ...]

def tensor_text(tensors: Sequence[torch.Tensor], stage: str) -> str:
    """Returns the text of the tensors' pending graph at a stage, without running it. A
    tensor that isn't pending is a forwarded output."""

def program_text(program: str, stage: str) -> str:
    """Returns a program's text at a stage. `program`: a name in `compile_log`, of one of
    the last `max_inspectable_programs` programs (including those from the disk) or of a general
    graph."""

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
    seconds: float  # total; 0.0 unless option `profile_commands` is on

def program_commands(program: str) -> list[CommandRow]: ...
def set_tensor_name(tensor: torch.Tensor, name: str) -> None:
    """Sets the tensor's name in dumps and messages; in-place updates preserve it."""

def tensor_name(tensor: torch.Tensor) -> str: ...
def mark_size(
    tensor: torch.Tensor, dim: int, is_dynamic: bool, least: int, most: int
) -> bool:
    """Marks a dimension of the tensor's value as dynamic (with sizes from `least` to
    `most`) or static. Returns False if no scheduled step computes the value."""

def tensor_origin(tensor: torch.Tensor) -> str:
    """Returns the line that created the value ("train.py:12"); "" if the value is pending
    or was created without `source_info`."""

def current_line() -> str:
    """Returns the line of the innermost frame of user code: "train.py:12"."""

def enter_module(module: torch.nn.Module, /) -> None:
    """Sets the module path ("encoder.layer.0") of the ops that this thread traces until
    `leave_module`. Called around each module's call while `source_info` is on."""

def leave_module() -> None: ...
def leave_all_modules() -> None:
    """Leaves all modules that the calling thread has entered."""

def set_paths_below(
    function: Callable[[torch.nn.Module], dict[torch.nn.Module, str]],
) -> None:
    """Sets the function by which `enter_module` gets the paths of the modules below an
    outermost module."""

# -- programs for other compilers ------------------------------------------

class ProgramTensorRow(TypedDict):
    dtype: str
    sizes: list[int]
    name: str  # "" if unknown
    donatable: bool  # inputs only
    data: int  # inputs only: `data_key` of the traced value, 0 if unknown
    parameter: int  # outputs only: the forwarded input, -1 if it is computed

class TracedProgram:
    """A graph, and the values with which it was traced, if they are known."""

    name: str  # hash, hexadecimal
    entry: str  # name of the function in each stage
    output_of_tensor: list[int]  # index of the output for each requested tensor
    def inputs(self) -> list[ProgramTensorRow]: ...
    def outputs(self) -> list[ProgramTensorRow]: ...
    def scalars(self) -> list[tuple[str, float | None]]:
        """Returns, for each dynamic scalar, "int" or "float" and the value in the trace
        (None if it is unknown)."""
    def input_tensor(self, index: int) -> torch.Tensor:
        """Returns a CPU copy of the input's value in the trace."""
    def text(self, stage: str, legal_ops: Sequence[str], locations: bool) -> str:
        """Returns the MLIR text at a stage such as "torch", without library calls."""
    def bytecode(self, stage: str, legal_ops: Sequence[str]) -> bytes: ...
    def ir(self) -> str: ...
    def dot(self) -> str: ...
    def dump(self) -> None:
        """Writes the program to the folder of option `dump`, once."""

def pending_program(tensors: Sequence[torch.Tensor]) -> TracedProgram:
    """Returns the program that `sync_tensors` would run."""

def recent_program(name: str) -> TracedProgram:
    """Returns one of the last `max_inspectable_programs` programs, without values."""

class GeneralGraph:
    """The general graph of programs that only differ in sizes. Raises RuntimeError if
    there is none."""

    name: str  # hash, hexadecimal
    def __init__(self, programs: Sequence[TracedProgram]) -> None: ...
    def parameter_sizes(self) -> list[tuple[int, int, str]]:
        """Returns input, dim and expression ("s0", "2*s0 + 1") of each varying size."""
    def symbols(self) -> list[str]: ...
    def text(self) -> str: ...
    def bind(self, program: TracedProgram) -> tuple[list[int] | None, str]:
        """Returns the values of the symbols at which the graph equals `program`, and ""; or
        None, and the reason why there are none."""
    def instantiate(self, values: Sequence[int], name: str) -> TracedProgram: ...
    def stand_ins(self) -> list[list[int]]:
        """Returns stand-ins: samples of the symbols' values at which the graph can be
        compiled."""
    def refine(self, program: TracedProgram) -> GeneralGraph: ...

class SymbolicProgram:
    """A general graph as one module for all sizes. Raises RuntimeError, with the op and
    the user's line, if a number isn't a known function of the sizes."""

    def __init__(
        self,
        general: GeneralGraph,
        ranges: Sequence[tuple[str, int, int]],
        stage: str,
        legal_ops: Sequence[str],
        bytecode: bool,
    ) -> None:
        """`ranges`: name, smallest and largest value of the first symbols. Symbol i without
        a range is named "s<i>" and has at least the value 2."""
    def symbols(self) -> list[tuple[str, int, int]]: ...
    def module(self) -> bytes: ...
    def parameters(self) -> list[int]:
        """Returns the indices of the symbols whose values are the last arguments."""
    def problem_at(self, values: Sequence[int]) -> str:
        """Returns why the program isn't valid at these values of the symbols, or ""."""

def specialize_module(module: str, sizes: Sequence[tuple[str, int]]) -> str:
    """Returns the text of a symbolic program at the given values of its symbols."""

def skeleton(program: TracedProgram) -> str:
    """Returns the hash of the program's skeleton, which is equal for programs that only
    differ in sizes and in integers that may follow from sizes."""

def data_key(tensor: torch.Tensor) -> int:
    """Returns an id of a lazy tensor's value in memory; 0 if the value is pending."""

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
    """Registers `name` as a value of option `backend`. `compile` returns a function that is
    called with inputs, scalars and the memory of the outputs. `compile_general` returns a
    program for all sizes and such a function, or the reason why there is none. The message
    of an exception is shown to the user."""

def remove_backend(name: str) -> None: ...
def enter_portable_trace() -> None:
    """Makes ops that have a formula be traced as the formula, even though torch_ltc's own
    compiler could call PyTorch's kernels of these ops."""

def leave_portable_trace() -> None: ...
def set_first_tensor_hook(hook: Callable[[], None]) -> None:
    """Sets the function that is called before the first lazy tensor is created. It must be
    idempotent, because each thread that creates a tensor meanwhile calls it."""

def set_backend_finder(finder: Callable[[str], None]) -> None:
    """Sets the function that is called with the name of an unregistered backend. It must
    register that backend or raise an error."""

class Executable:
    """A compiled module that runs on contiguous CPU tensors."""

    def inputs(self) -> list[ProgramTensorRow]: ...
    def scalars(self) -> list[str]:
        """Returns "float" or "int" for each number argument."""

    def outputs(self) -> list[ProgramTensorRow]: ...
    def run(
        self,
        inputs: Sequence[torch.Tensor],
        scalars: Sequence[float],
        outputs: Sequence[torch.Tensor],
    ) -> None: ...

def compile_module(module: bytes) -> Executable:
    """Compiles MLIR text or bytecode with one function, in the torch dialect, in TOSA or
    at the linalg stage."""

def bind_executable(program: TracedProgram) -> Executable | None:
    """Returns the general executable of this program and of earlier programs that differ
    from it only in sizes, bound to this program's sizes. Returns None if there is none."""

# -- caches, memory --------------------------------------------------------

class CacheInfo(TypedDict):
    directory: str  # "" when the disk isn't used
    writable: bool
    problem: str  # why it isn't writable, "" otherwise
    bytes: int  # like all counts here, 0 until the first program opens the cache
    max_bytes: int
    memory_hits: int
    disk_hits: int
    misses: int
    stores: int
    evictions: int
    rejected: int

def cache_info(open: bool = False) -> CacheInfo:
    """Describes the disk cache. With `open`, opens the cache first, which loads the
    runtime."""

def clear_program_cache() -> None:
    """Clears the in-memory program cache and returns cached memory to the system. The
    disk cache remains."""

def memory_stats() -> dict[str, int]:
    """Returns allocated_bytes, peak_allocated_bytes (the host buffers of tensors),
    cached_bytes, arena_bytes (shared by all programs), packed_weight_bytes (packed copies of
    weights), live_tensors, and pending_ops of the calling thread."""

def reset_peak_memory_stats() -> None: ...

# -- messages --------------------------------------------------------------

def set_log_hook(hook: Callable[[int, str], None] | None) -> None:
    """Sets the function that gets each log message, with a level of Python's logging. Any
    thread may call it, with the GIL held. Messages before the first hook are stored and
    passed to it. Without a hook (None), messages from WARNING on go to stderr."""

# -- guards ------------------------------------------------------------------

def enter_guard(kind: str) -> None:
    """Makes events of `kind` ("sync", "fallback" or "recompile") raise an error from now
    on, in the whole process."""

def leave_guard(kind: str) -> None: ...
