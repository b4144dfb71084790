"""The launch line, as accelerate itself reads it, and what it needs that is not there."""

import importlib.util
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from ba_eval.cli import main
from ba_eval.errors import InputError
from ba_eval.train import launch
from ba_eval.train.config import load_config, ready
from ba_eval.train.launch import launch_line, missing_package

pytest.importorskip("accelerate", reason="training needs the train extra")

DOCUMENTED = (Path(__file__).parents[2] / "docs" / "training.md").read_text().split("```yaml\n")[1:]
"""The YAML of the documentation, and what stands after it."""


@pytest.fixture
def no_deepspeed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *_: None if name == "deepspeed" else found(name))


def as_accelerate_reads(words: list[str]) -> Any:
    from accelerate.commands.launch import launch_command_parser

    return launch_command_parser().parse_args(words)


@pytest.mark.parametrize("name", ready())
def test_accelerate_takes_the_line_of_every_ready_configuration(name: str) -> None:
    config, file = load_config(name)
    missing_package(config)
    words = shlex.split(launch_line(config, file, ["rule=token", "trl={beta: 0.0}"]))
    assert words[:2] == ["accelerate", "launch"]
    read = as_accelerate_reads(words[2:])
    assert (read.module, read.training_script) == (True, "ba_eval.train")
    assert read.training_script_args == [str(file), "--set", "rule=token", "--set", "trl={beta: 0.0}"]
    assert read.num_processes == config.launch.get("num_processes", read.num_processes) >= 1
    assert (read.use_deepspeed, read.zero_stage) == ((True, 3) if "math-7b" in name else (False, None))


def test_a_misspelled_argument_of_trl_is_told_before_it_is_launched(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "toy", "--set", "trl.learning_rat=1", "--print-launch"]) == 2
    assert "trl.learning_rat: GRPOConfig has no such argument; did you mean 'learning_rate'?" in capsys.readouterr().err


@pytest.mark.parametrize("name", [name for name in ready() if "math-7b" in name])
def test_deepspeed_is_named_where_it_is_missing(
    name: str, no_deepspeed: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", name, "--print-launch"]) == 0  # it may run elsewhere
    said = capsys.readouterr()
    assert said.out.startswith("accelerate launch ") and "pip install '.[train,deepspeed]'" in said.err
    (fsdp,) = (block.partition("```")[0] for block in DOCUMENTED if block.startswith("launch:"))
    assert main(["train", name, "--set", fsdp.strip().replace("launch: ", "launch="), "--print-launch"]) == 0
    said = capsys.readouterr()
    assert said.err == "" and as_accelerate_reads(shlex.split(said.out)[2:]).fsdp_version == "2"


def test_the_configuration_in_the_documentation_is_one(tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    file.write_text(DOCUMENTED[0].partition("```")[0])
    config, _ = load_config(str(file))
    assert config.prompts * config.group == 512 and config.lora is not None
    assert launch_line(config, file, []).startswith("accelerate launch --num_processes 8 -m ba_eval.train ")


def test_the_configurations_that_trl_ships_load(no_deepspeed: None) -> None:
    trl = pytest.importorskip("trl")
    files = {file.stem: file for file in (Path(trl.__file__).parent / "accelerate_configs").glob("*.yaml")}
    assert {"zero3", "fsdp2", "multi_gpu"} <= files.keys()
    for name, file in files.items():
        config, _ = load_config("toy", [f"launch.config_file={file}"])
        assert (missing_package(config) is not None) == name.startswith("zero"), name
        assert "num_processes" not in launch_line(config, file, [])  # the file says how many


def test_the_7b_configurations_shard_as_the_file_that_trl_ships() -> None:
    trl = pytest.importorskip("trl")
    shipped = yaml.safe_load((Path(trl.__file__).parent / "accelerate_configs" / "zero3.yaml").read_text())
    for name in (name for name in ready() if "math-7b" in name):
        launch = load_config(name)[0].launch
        for key, value in {**shipped["deepspeed_config"], **shipped}.items():
            if key in launch:
                assert str(launch[key]).lower() == str(value).lower(), key
        assert shipped["distributed_type"] == "DEEPSPEED" and launch["use_deepspeed"] is True
        assert {"zero_stage", "zero3_init_flag", "zero3_save_16bit_model", "mixed_precision"} <= launch.keys()


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (
            "launch.num_proceses=2",
            "launch.num_proceses: accelerate launch has no such flag; did you mean 'num_processes'",
        ),
        ("launch.xyz=2", r"launch.xyz: .*no such flag \(`accelerate launch --help` lists them\)"),
        ("launch.mixed_precision=bf17", "invalid choice: 'bf17'"),
        ("launch.zero_stage=three", "invalid int value: 'three'"),
        ("launch.config_file=/nowhere.yaml", "/nowhere.yaml: accelerate cannot load it"),
    ],
)
def test_what_accelerate_refuses_is_told_before(setting: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        missing_package(load_config("toy", [setting])[0])


@pytest.mark.parametrize("value", ["0", "eight", "null", "true", "1.5"])
def test_the_number_of_processes_is_a_number(value: str) -> None:
    with pytest.raises(InputError, match="num_processes must be a whole number"):
        load_config("toy", [f"launch.num_processes={value}"])


def test_one_process_for_each_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    config, file = load_config("toy")
    for found, wanted in (([], 1), (["0", "1", "2"], 3)):
        monkeypatch.setattr(launch, "gpus", lambda found=found: found)
        assert launch_line(config, file, []).startswith(f"accelerate launch --num_processes {wanted} -m ba_eval.train ")
