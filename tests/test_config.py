"""A run's configuration: file, --set and flags, later ones win."""

from pathlib import Path

import pytest

from ba_eval.config import load_config
from ba_eval.errors import InputError

YAML = """\
models: {ba: runs/ba}
benchmarks: [math500:4, aime24:32]
out: results/x
temperature: 0.5
engine_args: {dtype: float32}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text(YAML)
    return path


def test_later_wins(file: Path) -> None:
    config = load_config(
        file,
        ["temperature=0.7", "seed=3", "engine_args.max_num_seqs=8"],
        {"seed": 5, "engine_args": {"dtype": "bfloat16"}},
    )
    assert (config.temperature, config.seed) == (0.7, 5)
    assert config.engine_args == {"dtype": "bfloat16", "max_num_seqs": 8}
    assert config.model_specs() == ["ba=runs/ba"]


def test_a_run_file_can_be_run_again(file: Path, tmp_path: Path) -> None:
    import msgspec
    import yaml

    config = load_config(file, [], {})
    again = tmp_path / "again.yaml"
    again.write_text(yaml.safe_dump(msgspec.to_builtins(config)))
    assert load_config(again, [], {}) == config


@pytest.mark.parametrize(
    ("settings", "flags", "message"),
    [
        (["temprature=1"], {}, "unknown key 'temprature'; did you mean 'temperature'?"),
        (["temperature=-1"], {}, "run.yaml and the command line: temperature: -1 is out of range"),
        ([], {"top_p": 1.5}, "top_p: 1.5 is out of range"),
        ([], {"top_p": float("nan")}, "top_p: nan is out of range"),
        ([], {"n": 0}, "n: 0 is out of range"),
        (["temperature"], {}, "must be key=value"),
        (["temperature.x=1"], {}, "'temperature' is not a mapping"),
        ([], {"temperature": 0.0, "k": [1, 4]}, "needs a temperature above 0"),
        (["benchmarks=3"], {}, "benchmarks: Expected `array`, got `int`"),
    ],
)
def test_bad_values(file: Path, settings: list[str], flags: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as error:
        load_config(file, settings, flags)
    assert message in str(error.value)


def test_value_error_names_the_line(file: Path) -> None:
    file.write_text(YAML.replace("0.5", "-0.5"))
    with pytest.raises(InputError, match=r"run\.yaml:4: temperature: -0\.5 is out of range"):
        load_config(file, [], {})


def test_missing_parts_name_the_flag() -> None:
    with pytest.raises(InputError, match="add --benchmarks"):
        load_config(None, [], {"models": ["a=b"], "out": "x"})


def test_a_misspelled_key_is_told_before_what_is_missing(file: Path) -> None:
    file.write_text("models: {a: b}\nout: x\nbenchmark: [smoke]\n")
    with pytest.raises(InputError, match=r"run\.yaml:3: unknown key 'benchmark'; did you mean 'benchmarks'"):
        load_config(file, [], {})


def test_home_folder_in_a_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somewhere")
    config = load_config(file, ["data_dir=~/data"], {"out": "~/run"})
    assert (config.out, config.data_dir) == ("/somewhere/run", "/somewhere/data")
    assert load_config(file, ["out=~nosuchuser/x"], {}).out == "~nosuchuser/x"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("models:\n  1: a\nbenchmarks: [x]\nout: o\n", "run.yaml:2: key 1 must be text; write it in quotes: '1'"),
        ("benchmarks: [x]\nmodels: {m: [1]}\nout: o\n", "run.yaml:2: models[...]: Expected `str`, got `array`"),
        ("models: m\nbenchmarks: [x]\nout: o\ntemperature: .inf\n", "run.yaml:4: temperature: inf is out of range"),
        ("models: m\nbenchmarks: [x]\nout: o\ntop_k: -5\n", "run.yaml:4: top_k: -5 is out of range"),
        ("models: m\nbenchmarks: [x]\nout: ''\n", "run.yaml:3: out: must name a folder"),
    ],
)
def test_bad_files(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    with pytest.raises(InputError) as error:
        load_config(file, [], {})
    assert message in str(error.value)
