"""Options are set from Python and from the environment."""

from __future__ import annotations

import pytest
import torch
import torch_ltc
from subprocesses import run_python
from torch_ltc.config import Config


def test_annotations_are_the_table() -> None:
    table = {o["name"]: o["type"] for o in torch_ltc.config.options()}
    assert Config.__annotations__ == table


def test_every_option_is_documented() -> None:
    for option in torch_ltc.config.options():
        assert option["environment"].startswith(("TORCH_LTC_", "LTC_"))
        assert option["help"].strip()
        assert option["source"] in ("default", "environment", "program")
    text = torch_ltc.config.describe()
    for option in torch_ltc.config.options():
        assert option["name"] in text and option["environment"] in text


def test_attributes_and_context_manager() -> None:
    assert torch_ltc.config.auto_step is True
    with torch_ltc.config(auto_step=False, max_inspectable_programs=3):
        assert torch_ltc.config.auto_step is False
        assert torch_ltc.config.max_inspectable_programs == 3
    assert torch_ltc.config.auto_step is True
    with pytest.raises(ZeroDivisionError), torch_ltc.config(auto_step=False):
        raise ZeroDivisionError
    assert torch_ltc.config.auto_step is True


def test_context_manager_is_all_or_nothing() -> None:
    with (
        pytest.raises(ValueError),
        torch_ltc.config(auto_step=False, max_inspectable_programs="a"),
    ):
        pass
    assert torch_ltc.config.auto_step is True


def test_unknown_option_names_the_nearest() -> None:
    with pytest.raises(AttributeError, match="auto_step"):
        torch_ltc.config.auto_stop = True
    with pytest.raises(AttributeError, match="auto_step"):
        _ = torch_ltc.config.auto_stop


@pytest.mark.parametrize("value", ["maybe", -1, 1.5, None])
def test_wrong_values_are_rejected(value) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        torch_ltc.config.max_inspectable_programs = value
    assert "\n" not in str(caught.value).strip()


def test_environment() -> None:
    program = """
        import torch_ltc
        option = {o["name"]: o for o in torch_ltc.config.options()}["auto_step"]
        print(option["value"], option["source"])
    """
    result = run_python(program, TORCH_LTC_AUTO_STEP="off")
    assert result.stdout.strip() == "False environment"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TORCH_LTC_AUTO_STEP", "maybe"),
        ("TORCH_LTC_MAX_TRACE_OPS", "many"),
        ("TORCH_LTC_CACHE_SIZE_MB", "-3"),
        ("LTC_SAVE_TENSORS_FMT", "pdf"),
    ],
)
def test_environment_that_does_not_parse(variable: str, value: str) -> None:
    program = "import torch; print(torch.ones(2, device='lazy').sum().item())"
    result = run_python(program, **{variable: value})
    assert result.stdout.strip() == "2.0", "the default is used"
    # On a busy machine a long compilation adds a line.
    lines = result.stderr.strip().splitlines()
    (line,) = [line for line in lines if variable in line]
    assert value in line


def test_automatic_step_can_be_switched_off() -> None:
    parameter = torch.nn.Parameter(torch.ones(2, device="lazy"))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    parameter.sum().backward()
    before = torch_ltc.metrics()["steps"]
    with torch_ltc.config(auto_step=False):
        optimizer.step()
    assert torch_ltc.metrics()["steps"] == before
    optimizer.step()
    assert torch_ltc.metrics()["steps"] == before + 1


def test_forced_fallback() -> None:
    torch_ltc.reset_metrics()
    with torch_ltc.config(force_fallback="aten::relu"):
        result = torch.relu(torch.tensor([-1.0, 2.0], device="lazy")).tolist()
    assert result == [0.0, 2.0]
    (row,) = torch_ltc.fallbacks()
    assert row["op"] == "aten::relu" and row["calls"] == 1
    assert "test_config.py" in row["location"]


def test_save_tensors_file(tmp_path) -> None:
    for form, sign in (("text", "add"), ("dot", "digraph")):
        path = tmp_path / form
        program = """
            import torch, torch_ltc
            (torch.ones(2, device="lazy") + 1).sum().item()
        """
        run_python(program, LTC_SAVE_TENSORS_FILE=str(path), LTC_SAVE_TENSORS_FMT=form)
        assert sign in path.read_text()


def test_messages_go_to_logging() -> None:
    # In a subprocess: a message that is logged only once may already have been logged.
    program = """
        import logging, torch, torch_ltc
        messages = []
        handler = logging.Handler()
        handler.emit = lambda record: messages.append(record.getMessage())
        logging.getLogger("torch_ltc").addHandler(handler)
        with torch_ltc.config(max_trace_ops=20):
            y = torch.zeros(2, device="lazy")
            for _ in range(50):
                y = y + 1
            y.tolist()
        print(sum("max_trace_ops" in message for message in messages))
    """
    assert run_python(program).stdout == "1\n"
