"""``a2a-fencing dashboard --open``: what is wrong with the file is said before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_fencing_dashboard.cli import main


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"dear diary", "expected OTLP JSON lines, Jaeger's JSON download or a dashboard store"),
        (b'{"resourceLogs": []}', "no facts of a2a-fencing here"),
    ],
)
def test_a_file_that_is_no_history_is_one_line(
    tmp_path: Path, content: bytes, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    assert main(["dashboard", "--open", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "--open: notes.txt" in err
    assert said in err


def test_a_file_that_is_missing_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dashboard", "--open", "/nowhere.jsonl"]) == 2
    assert "'/nowhere.jsonl' does not exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    "option",
    [
        ("--store", "sqlite:///facts.sqlite"),
        ("--otlp-port", "4319"),
        ("--forward", "http://127.0.0.1:4320"),
        ("--alert-webhook", "http://127.0.0.1:4321"),
    ],
)
def test_what_takes_facts_in_does_not_go_with_a_file(
    tmp_path: Path, option: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.jsonl").write_text("{}")
    assert main(["dashboard", "--open", str(tmp_path / "run.jsonl"), *option]) == 2
    assert f"so {option[0]} has no effect" in capsys.readouterr().err
