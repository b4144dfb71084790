"""The run folder survives kills and full disks, and has one writer."""

import multiprocessing
import os
import resource
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_eval.errors import InputError
from ba_eval.records import Sample, VerdictRecord, records_path
from ba_eval.store import RunFolder, StoreError, cut_torn_line, read_records


def sample(index: int, text: str = "x", problem_id: str = "p") -> Sample:
    return Sample(
        key="k",
        problem_id=problem_id,
        index=index,
        seed=1,
        finish_reason="stop",
        prompt_tokens=1,
        completion_tokens=1,
        seconds=0.1,
        text=text,
    )


def indices(run: Path) -> list[int]:
    return [s.index for s in read_records(records_path(run, "samples", "m", "b"), Sample)]


@given(st.text(), st.text(max_size=20))
def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, text: str, name: str) -> None:
    folder = tmp_path_factory.mktemp("run")
    with RunFolder(folder / "r") as run:
        run.append("model/" + name, "b", [sample(0, text)])
        assert [s.text for s in run.samples("model/" + name, "b")] == [text]
    assert len(list((folder / "r" / "samples").iterdir())) == 1  # no name leads out of its folder


@pytest.mark.parametrize("torn", [b'{"key":"k","prob', b"x" * 200_000, b""])
def test_a_torn_last_line_is_dropped(tmp_path: Path, torn: bytes) -> None:
    with RunFolder(tmp_path / "r") as run:
        run.append("m", "b", [sample(0)])
        run.append("m", "b", [sample(1)])
    path = records_path(tmp_path / "r", "samples", "m", "b")
    path.write_bytes(path.read_bytes() + torn)
    assert indices(tmp_path / "r") == [0, 1]
    with RunFolder(tmp_path / "r") as run:
        run.append("m", "b", [sample(2)])
    assert indices(tmp_path / "r") == [0, 1, 2]


def test_a_file_without_any_newline_is_emptied(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"torn" * 50_000)
    cut_torn_line(path)
    assert path.read_bytes() == b""


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_bytes(b'{"key": 3}\n')
    with pytest.raises(InputError, match=r"f\.jsonl:1: is not a record"):
        list(read_records(path, Sample))


def _fill(folder: Path, limit: int, together: int) -> None:
    """Writes `together` records at once until the file size limit, which the kernel enforces like a full disk's end."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    with RunFolder(folder) as run:
        try:
            for i in range(0, 1000, together):
                run.append("m", "b", [sample(j, "y" * 300) for j in range(i, i + together)])
        except StoreError as error:
            assert "make room and run the same command again" in str(error)
            os._exit(7)
    os._exit(0)


@pytest.mark.parametrize("together", [1, 7, 1000])
def test_a_full_disk_leaves_whole_lines(tmp_path: Path, together: int) -> None:
    """And all of those that had room."""
    process = multiprocessing.get_context("fork").Process(target=_fill, args=(tmp_path / "r", 10_000, together))
    process.start()
    process.join()
    assert process.exitcode == 7
    raw = records_path(tmp_path / "r", "samples", "m", "b").read_bytes()
    assert raw.endswith(b"}\n")
    assert indices(tmp_path / "r") == list(range(raw.count(b"\n")))
    assert len(raw) + len(raw) // raw.count(b"\n") > 10_000


def test_one_writer(tmp_path: Path) -> None:
    with (
        RunFolder(tmp_path / "r"),
        pytest.raises(InputError, match="another ba-eval is writing"),
        RunFolder(tmp_path / "r"),
    ):
        pass


def _hold(folder: Path, ready: "multiprocessing.synchronize.Event") -> None:
    with RunFolder(folder):
        ready.set()
        signal.pause()


def test_a_killed_writer_leaves_no_lock(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    process = context.Process(target=_hold, args=(tmp_path / "r", ready))
    process.start()
    assert ready.wait(10)
    process.kill()
    process.join()
    with RunFolder(tmp_path / "r"):
        pass


def test_a_foreign_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="is not a run folder"), RunFolder(tmp_path):
        pass


def test_nothing_is_left_of_a_refused_run(tmp_path: Path) -> None:
    with pytest.raises(InputError), RunFolder(tmp_path / "r"):
        raise InputError("prompt longer than the context")
    assert not (tmp_path / "r").exists()


def test_drop_keeps_the_rest(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "r") as run:
        for i in range(5):
            run.append("m", "b", [sample(i)])
        assert run.drop("m", "b", Sample, lambda s: s.index in (1, 3)) == 2
        assert [s.index for s in run.samples("m", "b")] == [0, 2, 4]
        verdict = VerdictRecord(key="k", problem_id="p", index=0, outcome="wrong", reason="x", grader="g 1")
        run.replace_verdicts("m", "b", [verdict])
        assert list(run.verdicts("m", "b")) == [verdict]
