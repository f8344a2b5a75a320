"""`torch.compile(model, backend="torch_ltc")`: compiles forward and backward of models on
the CPU with torch_ltc's compiler.

TorchDynamo captures the function, and AOTAutograd splits it into forward and backward.
Each graph is traced once on device lazy (once for each set of sizes, if they vary),
compiled (at most twice if only sizes vary and a program for all sizes exists), and then run
on the CPU tensors. An op that can't be compiled runs eagerly between programs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx
from torch._ops import HigherOrderOperator
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_map

from torch_ltc._backend import bindings
from torch_ltc._backends.dynamo_parts import in_parts
from torch_ltc._backends.mlir_module import bind_program, compile_mlir
from torch_ltc._diagnostics.messages import logger, what_was_forbidden
from torch_ltc._torch_patches.higher_order import UNROLLED, plain_kernel
from torch_ltc.debug import no_fallback, no_sync
from torch_ltc.program import Program
from torch_ltc.step import mark_step

# Random ops whose distribution depends only on sizes and numbers. At each call, torch
# generates their results on the CPU, as in eager, and the program gets them as inputs.
_DRAWN = {
    "aten.bernoulli.p",
    "aten.rand_like.default",
    "aten.randn_like.default",
    "aten.rand.default",
    "aten.randn.default",
    "aten.randint.default",
    "aten.randint.low",
}


class _NotCompiled(Exception):
    """Raised for an op that must run eagerly between programs, with the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason  # fx.Interpreter extends the message


#: The classes of errors that eager's kernels and the tracer raise for a call.
_REJECTIONS = (RuntimeError, IndexError, TypeError, ValueError)


class _Tracer(fx.Interpreter):
    """Runs a graph of CPU tensors on device lazy."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        #: Functions that generate a random tensor at each call, with the lazy stand-ins of
        #: their results.
        self.drawn: list[tuple[Callable[[], torch.Tensor], torch.Tensor]] = []
        #: The node that is being run, for error messages.
        self.node: fx.Node | None = None

    def run_node(self, n: fx.Node) -> Any:
        self.node = n
        return super().run_node(n)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        if kwargs.get("device") is not None:
            kwargs = {**kwargs, "device": torch.device("lazy")}
        if str(target) == "aten.native_dropout.default":
            return self._dropout(*args)
        if str(target) in _DRAWN:
            return self._draw(target, args, kwargs)
        if isinstance(target, HigherOrderOperator):
            return self._higher_order(target, args, kwargs)
        tags = getattr(target, "tags", ())
        if torch.Tag.nondeterministic_seeded in tags:
            raise _NotCompiled("PyTorch's CPU kernel draws its random numbers")
        result = super().call_function(target, args, kwargs)
        if isinstance(result, torch.Tensor) and result.is_complex():
            raise _NotCompiled("complex numbers")  # a conjugate, or a copy
        return result

    def _higher_order(self, target: HigherOrderOperator, args: Any, kwargs: Any) -> Any:
        kernel = plain_kernel(target)
        if target.name() not in UNROLLED or kernel is None:
            raise _NotCompiled(f"tensors' values determine which ops {target} runs")

        def traced(value: Any) -> Any:
            if not isinstance(value, fx.GraphModule):
                return value
            inner = _Tracer(value)
            inner.drawn = self.drawn
            return inner.run

        args, kwargs = tree_map(traced, (args, kwargs))
        return kernel(*args, **kwargs)

    def get_attr(self, target: str, args: Any, kwargs: Any) -> Any:
        value = super().get_attr(target, args, kwargs)
        return value.to("lazy") if isinstance(value, torch.Tensor) else value

    def _draw(self, target: Any, args: Any, kwargs: Any) -> torch.Tensor:
        def on_cpu(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return torch.empty(value.shape, dtype=value.dtype)
            return torch.device("cpu") if isinstance(value, torch.device) else value

        cpu_args, cpu_kwargs = tree_map(on_cpu, (args, kwargs))
        return self._data(lambda: target(*cpu_args, **cpu_kwargs))

    def _data(self, draw: Callable[[], torch.Tensor]) -> torch.Tensor:
        state = torch.get_rng_state()  # tracing must not advance it
        stand_in = draw().contiguous().to("lazy")
        torch.set_rng_state(state)
        self.drawn.append((draw, stand_in))
        return stand_in

    def _dropout(self, x: torch.Tensor, p: float, train: bool | None) -> Any:
        if train is False or p == 0:
            return x.clone(), torch.ones_like(x, dtype=torch.bool)
        shape, dtype = x.shape, x.dtype
        mask = self._data(lambda: torch.empty(shape, dtype=dtype).bernoulli_(1 - p))
        return x * mask * (1 / (1 - p) if p < 1 else 0.0), mask.bool()


def _compile_graph(module: fx.GraphModule, example_inputs: list[Any]) -> Callable:
    """Returns a function of the graph's inputs that returns the list of its outputs.
    Raises NotImplementedError if an input isn't on the CPU."""
    for value in example_inputs:
        if isinstance(value, torch.Tensor) and value.device.type != "cpu":
            raise NotImplementedError(
                "torch.compile(backend='torch_ltc') runs on CPU tensors, but an input "
                f"is on '{value.device}'."
            )
    if any(map(_is_symbolic, example_inputs)):
        return _BySizes(module)
    return _compile_sizes(module, example_inputs)


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return not all(isinstance(size, int) for size in value.shape)
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


def _unboxed(args: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(args) == 1 and isinstance(args[0], list):  # boxed by AOTAutograd
        return tuple(args[0])
    return args


class _BySizes:
    """A graph that TorchDynamo captured for varying sizes, usually batch sizes. The general
    executable, if there is one, is compiled at the second set of sizes, and bound to each
    later set."""

    def __init__(self, module: fx.GraphModule) -> None:
        self._module = module
        self._programs: dict[tuple[Any, ...], Callable] = {}

    def __call__(self, *args: Any) -> list[Any]:
        args = _unboxed(args)
        key = tuple(
            (v.shape, v.stride(), v.dtype) if isinstance(v, torch.Tensor) else v
            for v in args
        )
        program = self._programs.get(key)
        if program is None:
            program = _compile_sizes(self._module, list(args), varies=True)
            self._programs[key] = program
        return program(*args)


def _around(module: fx.GraphModule, node: fx.Node, reason: str) -> Callable:
    """Returns a function that runs the graph: the node's op eagerly, because the compiler
    doesn't support it, and the rest compiled. Logs a warning."""
    ops = [n for n in module.graph.nodes if n.op == "call_function"]
    calls = sum(n.target is node.target for n in ops)
    logger.warning(
        "torch.compile(backend='torch_ltc') runs %d of a graph's %d ops eagerly "
        "(%s) and compiles the others: %s.",
        calls,
        len(ops),
        node.target,
        reason,
    )
    run = in_parts(module, node.target, _BySizes)
    return lambda *args: run(*_unboxed(args))


def _compile_sizes(
    module: fx.GraphModule, example_inputs: list[Any], varies: bool = False
) -> Callable:
    """Compiles the graph for the sizes of these inputs. `varies`: whether other sizes may
    follow; if so, uses a program for all sizes if there is one."""
    mark_step()
    with (
        torch._guards.tracing(None),
        torch._subclasses.fake_tensor.unset_fake_temporarily(),
    ):
        lazy = [_stand_in(value) for value in example_inputs]
        tracer = _Tracer(module)
        try:
            # The stand-ins have no meaningful values, so ops that read values must fail.
            with torch.no_grad(), no_fallback(), no_sync():
                outputs = list(tracer.run(*lazy))
        except _NotCompiled as error:
            assert tracer.node
            return _around(module, tracer.node, error.reason)
        except _REJECTIONS as error:
            # A call that the tracer rejects runs eagerly, too: torch's fake tensors have
            # accepted it, and only eager's kernel decides whether it is an error.
            if tracer.node is None or tracer.node.op != "call_function":
                raise
            reason = what_was_forbidden(error) or str(error).split(" [aten::")[0]
            return _around(module, tracer.node, reason)
        shared = _shared_memory(outputs, lazy)
        tensors = [o for o in outputs if isinstance(o, torch.Tensor)]
        traced = bindings().pending_program(
            [shared.get(_memory_id(t), t).to("lazy") for t in tensors]
        )
        compiled = bind_program(traced) if varies else None
        compiled = compiled or compile_mlir(Program(traced, "torch").text)
        places = _places(traced, lazy, tracer)
        numbers = [value for _, value in traced.scalars()]
    draws = [draw for draw, _ in tracer.drawn]
    results = iter(traced.output_of_tensor)
    plan = [
        _Result(next(results), o, _memory_id(o) in shared)
        if isinstance(o, torch.Tensor)
        else o
        for o in outputs
    ]

    dumps = bindings().config_get

    def run(*args: Any) -> list[Any]:
        if dumps("dump"):
            traced.dump()
        values = [*_unboxed(args), *(draw() for draw in draws)]
        inputs = [
            source if isinstance(source, torch.Tensor) else values[source].detach()
            for source in places
        ]
        try:
            made = compiled(*inputs, *numbers)
        except RuntimeError:
            if not draws:  # a second run would draw other numbers
                module(*_unboxed(args))  # raises eager's error, if there is one
            raise
        return _answer(made, plan)

    return run


class _Result:
    """How an output of the graph is made from a result of the program. `is_part`: whether
    the result is the memory that several outputs share, and not the output itself."""

    def __init__(self, index: int, output: torch.Tensor, is_part: bool) -> None:
        self.index, self.is_part = index, is_part
        self.dtype, self.size, self.stride = (
            output.dtype,
            output.size(),
            output.stride(),
        )
        self.offset = output.storage_offset()

    def of(self, made: Sequence[torch.Tensor], used: set[int]) -> torch.Tensor:
        result = made[self.index]
        if self.is_part:
            memory = result.view(self.dtype)
            return memory.as_strided(self.size, self.stride, self.offset)
        if self.index in used:
            result = result.clone()
        used.add(self.index)
        if result.stride() != self.stride:  # programs write in C order
            result = _restrided(result, self.stride)
        return result


def _memory_id(value: Any) -> int:
    """Returns 0 unless `value` is a lazy tensor."""
    is_lazy = isinstance(value, torch.Tensor) and value.device.type == "lazy"
    return bindings().memory_id(value) if is_lazy else 0


def _shared_memory(outputs: list[Any], inputs: list[Any]) -> dict[int, torch.Tensor]:
    """Returns, by its id, each memory that several outputs share, as a tensor of rank 1.
    AOTAutograd makes outputs that share memory with an input itself."""
    keys = [_memory_id(o) for o in outputs]
    of_inputs = set(map(_memory_id, inputs))
    memory: dict[int, torch.Tensor] = {}
    for key, output in zip(keys, outputs):
        if key == 0 or key in of_inputs or key in memory or keys.count(key) == 1:
            continue
        count, rest = divmod(output.untyped_storage().nbytes(), output.element_size())
        if rest == 0:
            memory[key] = output.detach().as_strided((count,), (1,), 0)
    return memory


def _answer(made: Sequence[torch.Tensor], plan: list[Any]) -> list[Any]:
    """Returns the graph's outputs. `made`: the program's results. `plan`: a `_Result` for
    each output that is a tensor; for any other output, its value."""
    used: set[int] = set()
    return [item.of(made, used) if isinstance(item, _Result) else item for item in plan]


def _restrided(result: torch.Tensor, stride: tuple[int, ...]) -> torch.Tensor:
    """Returns `result` with eager's strides; elements that a stride of 0 repeats are stored
    once."""
    once = result
    for dim, step in enumerate(stride):
        if step == 0 and result.size(dim) > 1:
            once = once.narrow(dim, 0, 1)
    copy = torch.empty_strided(once.shape, stride, dtype=result.dtype)
    return copy.copy_(once).expand(result.shape)


def _stand_in(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    sizes, strides = tuple(map(int, value.shape)), tuple(map(int, value.stride()))
    return torch.empty_strided(sizes, strides, dtype=value.dtype).to("lazy")


def _places(traced: Any, lazy: list[Any], tracer: _Tracer) -> list[Any]:
    """Returns the source of each of the program's inputs: an index (into the graph's
    arguments, followed by the random tensors), or a constant tensor."""
    sources = [*lazy, *(stand_in for _, stand_in in tracer.drawn)]
    number_of = {
        bindings().data_key(value): number
        for number, value in enumerate(sources)
        if isinstance(value, torch.Tensor)
    }
    return [
        number_of[row["data"]]
        if row["data"] in number_of
        else traced.input_tensor(position)
        for position, row in enumerate(traced.inputs())
    ]


def compile_module(module: fx.GraphModule, example_inputs: list[Any]) -> Callable:
    """Compiles a graph of TorchDynamo. This is the entry point `torch_ltc` of group
    `torch_dynamo_backends`. Raises NotImplementedError for tensors on devices other than
    the CPU and lazy. Graphs on device lazy are returned unchanged."""
    if any(
        isinstance(v, torch.Tensor) and v.device.type == "lazy" for v in example_inputs
    ):
        return module  # its ops are traced when it is called

    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    def compiler(graph: fx.GraphModule, inputs: list[Any]) -> Callable:
        return make_boxed_func(_compile_graph(graph, inputs))

    # Decomposes attention, because its fused CPU ops support no dropout and their
    # gradients can't be traced.
    with sdpa_kernel(SDPBackend.MATH):
        return aot_autograd(fw_compiler=compiler, bw_compiler=compiler)(
            module, example_inputs
        )
