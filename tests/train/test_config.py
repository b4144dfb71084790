"""Training configurations: the ready ones, settings, and errors that name the line."""

from pathlib import Path

import msgspec
import pytest

from ba_eval.errors import InputError
from ba_eval.train.config import READY, load_config, ready


@pytest.mark.parametrize("name", ready())
def test_ready_configurations_fit_the_types(name: str) -> None:
    config, path = load_config(name)
    assert path.parent == READY
    config.micro_steps(1)
    config.micro_steps(int(config.launch.get("num_processes", 1)))
    if name != "toy":
        assert config.note and "proxy" in config.note
        assert (config.prompts, config.group, config.trl["learning_rate"]) == (64, 8, 1e-6)


def test_ready_ones_cover_both_models_and_data_sets() -> None:
    assert ready() == [
        "qwen2.5-math-7b-dapo17k",
        "qwen2.5-math-7b-polaris53k",
        "qwen3-1.7b-dapo17k",
        "qwen3-1.7b-polaris53k",
        "toy",
    ]


def test_data_beside_the_file_is_found() -> None:
    config, _ = load_config("toy")
    assert Path(config.data.source).is_file()


def test_settings_win(tmp_path: Path) -> None:
    config, _ = load_config("toy", ["rule=token", "trl.learning_rate=2e-6", "lora.r=8", "reward.overlong={buffer: 8}"])
    assert config.rule == "token" and config.trl["learning_rate"] == "2e-6"
    assert config.lora is not None and config.lora.r == 8
    assert config.reward.overlong is not None and config.reward.overlong.weight == 1.0
    assert msgspec.structs.asdict(config)["steps"] == 10


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model: m\nout: o\nsteps: 1\ndata: {source: x}\nrul: token\n", r"c\.yaml:5: .*'rul'; did you mean 'rule'"),
        ("model: m\nout: o\nsteps: 1\ndata: {sorce: x}\n", r"c\.yaml:4: .*did you mean 'source'"),
        ("model: m\nout: o\nsteps: 1\ndata: {source: x}\nscope: global\n", "scope"),
        ("model: m\nout: o\nsteps: 0\ndata: {source: x}\n", "steps: must be at least 1"),
        ("model: m\nout: o\ndata: {source: x}\n", "steps"),
        ("model: m\nout: o\nsteps: 1\ndata: {source: x}\nmax_response: 8\nreward: {overlong: {buffer: 9}}\n", "buffer"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        load_config(str(path))


def test_unknown_name() -> None:
    with pytest.raises(InputError, match=r"did you mean 'qwen3-1\.7b-dapo17k'"):
        load_config("qwen3-1.7b-dapo")


@pytest.mark.parametrize(("processes", "steps"), [(1, 4), (2, 2), (4, 1)])
def test_micro_steps(processes: int, steps: int) -> None:
    assert load_config("toy")[0].micro_steps(processes) == steps
    with pytest.raises(InputError, match="do not divide"):
        load_config("toy")[0].micro_steps(3)
