"""Checks arguments of public functions; the message of each error is one sentence."""

from __future__ import annotations

from typing import Any

import torch


def check_bool(function: str, name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise TypeError(
            f"torch_ltc.{function}: {name} must be True or False, but got {value!r:.60}."
        )


def check_callable(function: str, name: str, value: Any) -> None:
    if not callable(value):
        raise TypeError(
            f"torch_ltc.{function}: {name} must be a function, but got {value!r:.60}."
        )


def check_device(function: str, device: Any) -> None:
    """Raises ValueError for a device that doesn't exist, TypeError for objects other than
    devices. "" and None denote the only device."""
    if device is None or (isinstance(device, str) and device == ""):
        return
    if not isinstance(device, (str, torch.device)):
        raise TypeError(
            f"torch_ltc.{function}: a device must be 'lazy' or torch.device('lazy'), but "
            f"got {device!r:.60}."
        )
    # Compared as text, because torch's parser raises an error with several lines.
    if str(device) not in ("lazy", "lazy:0"):
        raise ValueError(
            f"torch_ltc.{function}: there is one device, 'lazy:0', but got "
            f"'{device!s:.60}'."
        )
