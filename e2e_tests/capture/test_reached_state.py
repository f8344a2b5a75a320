"""A captured function notices changes of Python state however its code reaches it."""

from __future__ import annotations

import builtins
import operator
import os
import sys
from collections.abc import Callable
from types import MappingProxyType, ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
import torch_ltc

Scaled = Callable[[torch.Tensor], torch.Tensor]
Case = tuple[Scaled, Callable[[float], object]]


class Box:
    scale: float = 1.0


def function_attribute() -> Case:
    def scaled(x: torch.Tensor) -> torch.Tensor:
        return x * scaled.scale

    scaled.scale = 1.0
    return scaled, lambda value: setattr(scaled, "scale", value)


def attribute_of_another_function() -> Case:
    def holder() -> None: ...

    holder.scale = 1.0
    return lambda x: x * holder.scale, lambda value: setattr(holder, "scale", value)


def replaced_code() -> Case:
    def scale() -> float:
        return 1.0

    def change(value: float) -> None:
        scale.__code__ = (lambda: 9.0).__code__

    return lambda x: x * scale(), change


def replaced_class() -> Case:
    box = Box()

    def change(value: float) -> None:
        box.__class__ = type("Other", (Box,), {"scale": value})

    return lambda x: x * box.scale, change


def imported_module() -> Case:
    module = sys.modules["captured_settings"] = ModuleType("captured_settings")
    module.scale = 1.0

    def scaled(x: torch.Tensor) -> torch.Tensor:
        import captured_settings

        return x * captured_settings.scale

    return scaled, lambda value: setattr(module, "scale", value)


def imported_name() -> Case:
    module = sys.modules["captured_settings"] = ModuleType("captured_settings")
    module.scale = 1.0

    def scaled(x: torch.Tensor) -> torch.Tensor:
        from captured_settings import scale

        return x * scale

    return scaled, lambda value: setattr(module, "scale", value)


def environment() -> Case:
    def change(value: float) -> None:
        os.environ["CAPTURED_SCALE"] = str(value)

    change(1.0)
    return lambda x: x * float(os.getenv("CAPTURED_SCALE", "0")), change


def built_in_name() -> Case:
    def change(value: float) -> None:
        builtins.CAPTURED_SCALE = value

    change(1.0)
    return lambda x: x * CAPTURED_SCALE, change  # noqa: F821


def globals_by_name() -> Case:
    def change(value: float) -> None:
        globals()["CAPTURED"] = value

    change(1.0)
    return lambda x: x * globals()["CAPTURED"], change


def attribute_getter() -> Case:
    box = SimpleNamespace(inner=Box())
    get = operator.attrgetter("inner.scale")
    return lambda x: x * get(box), lambda value: setattr(box.inner, "scale", value)


def mapping_proxy() -> Case:
    values = {"scale": 1.0}
    proxy = MappingProxyType(values)
    return lambda x: x * proxy["scale"], lambda value: values.update(scale=value)


def memory_view() -> Case:
    values = bytearray([1])
    view = memoryview(values)

    def change(value: float) -> None:
        values[0] = int(value)

    return lambda x: x * view[0], change


def equal_namespaces() -> Case:
    one, other = SimpleNamespace(k=1.0), SimpleNamespace(k=1.0)
    return (
        lambda x: x * (1.0 if one == other else 9.0),
        lambda value: setattr(one, "k", value),
    )


def number_of_another_device() -> Case:
    number = torch.tensor(1.0)

    def change(value: float) -> None:
        np.asarray(number.numpy())[...] = value

    return lambda x: x * number, change


CASES = [
    function_attribute,
    attribute_of_another_function,
    replaced_code,
    replaced_class,
    imported_module,
    imported_name,
    environment,
    built_in_name,
    globals_by_name,
    attribute_getter,
    mapping_proxy,
    memory_view,
    equal_namespaces,
    number_of_another_device,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_change_is_noticed(case: Callable[[], Case]) -> None:
    scaled, change = case()
    captured = torch_ltc.capture(scaled)
    x = torch.ones(2, device="lazy")
    for _ in range(8):
        assert captured(x).tolist() == [1, 1]
    change(9.0)
    for _ in range(8):
        assert captured(x).tolist() == [9, 9]
