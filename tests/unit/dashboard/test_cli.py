from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from a2a_fencing_dashboard.cli import main
from a2a_fencing_dashboard.ports import listener

COMMANDS = ["demo", "dashboard", "collect", "check", "export", "scenario", "doctor"]
HOST = "127.0.0.1"

# What the extras bring; `a2a-fencing[dashboard]` and so on would be needed for them.
EXTRAS = (
    "aiosqlite",
    "pandas",
    "plotly",
    "sqlalchemy",
    "starlette",
    "streamlit",
    "tenacity",
    "uvicorn",
)
BASE_INSTALL = f"""
import sys
sys.modules.update(dict.fromkeys({EXTRAS}))
from a2a_fencing_dashboard.cli import main
sys.exit(main(sys.argv[1:]))
"""


def on_the_base_install(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BASE_INSTALL, *arguments], capture_output=True, text=True, check=False
    )


def only_line(capsys: pytest.CaptureFixture[str]) -> str:
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err.rstrip("\n")


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    listed = out.partition("Commands:\n")[2]
    assert sorted(line.split()[0] for line in listed.splitlines()) == sorted(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_every_command_explains_itself(
    command: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, option]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: a2a-fencing {command}")


def test_no_command_shows_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Commands:" in err


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("a2a-fencing, version ")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["chek"], "a2a-fencing: No such command 'chek'"),
        (["doctor", "--loud"], "a2a-fencing doctor: No such option '--loud'"),
        (["doctor", "me"], "a2a-fencing doctor: Got unexpected extra argument (me)"),
        (["demo", "--replicas", "0"], "a2a-fencing demo: Invalid value for '--replicas'"),
        (["demo", "--seconds", "0"], "a2a-fencing demo: Invalid value for '--seconds'"),
        (["demo", "--jaeger-url", "jaeger"], "a2a-fencing demo: Invalid value for '--jaeger-url'"),
        (["demo", "--dsn", "tasks.db"], "a2a-fencing demo: --dsn: "),
        (["demo", "--dsn", "mysql+nodriver://x/y"], "a2a-fencing demo: --dsn: "),
        (["demo", "--dsn", f"postgresql+asyncpg://u@{HOST}:1/d"], "a2a-fencing demo: --dsn: "),
        (["dashboard", "--store", "facts"], "a2a-fencing dashboard: --store: unknown store 'facts'"),
        (
            ["collect", "--store", "sqlite:////nowhere/facts"],
            "a2a-fencing collect: --store: cannot open",
        ),
        (["collect", "--forward", "http://"], "a2a-fencing collect: Invalid value for '--forward'"),
        (["collect", "--host", "192.0.2.1"], "a2a-fencing collect: --host: cannot listen on 192.0.2.1"),
        (["collect", "--host", "no.such.host.invalid"], "a2a-fencing collect: --host: cannot listen"),
    ],
)
def test_bad_usage_is_one_line(
    arguments: list[str],
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert only_line(capsys).startswith(complaint)


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("collect", "--otlp-port"),
        ("dashboard", "--otlp-port"),
        ("dashboard", "--port"),
        ("demo", "--port"),
    ],
)
def test_a_port_that_was_asked_for_and_is_taken(
    command: str,
    option: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with listener(HOST, 0, exact=True) as taken:
        port = taken.getsockname()[1]
        assert main([command, option, str(port)]) == 2
    assert only_line(capsys) == f"a2a-fencing {command}: {option}: port {port} on {HOST}: taken"


@pytest.mark.parametrize(
    ("command", "extra"), [("demo", "demo"), ("dashboard", "dashboard"), ("collect", "dashboard")]
)
def test_a_command_says_which_extra_it_needs(command: str, extra: str) -> None:
    done = on_the_base_install(command)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert f"pip install 'a2a-fencing[{extra}]'" in done.stderr


@pytest.mark.parametrize("arguments", [["--help"], *([command, "--help"] for command in COMMANDS)])
def test_help_needs_no_extra(arguments: list[str]) -> None:
    done = on_the_base_install(*arguments)
    assert (done.returncode, done.stderr) == (0, "")


def test_check_needs_no_extra(tmp_path: Path) -> None:
    path = tmp_path / "logs.jsonl"
    path.write_text('{"resourceLogs": []}\n')
    done = on_the_base_install("check", str(path))
    assert (done.returncode, done.stderr) == (3, "")


def test_doctor_needs_no_extra() -> None:
    done = on_the_base_install("doctor")
    assert done.returncode == 0
    assert "pip install 'a2a-fencing[dashboard]'" in done.stdout


def test_doctor_tells_what_it_finds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with listener(HOST, 0, exact=True) as taken:
        port = taken.getsockname()[1]
    monkeypatch.setenv("A2A_FENCING_ENDPOINT", f"http://{HOST}:{port}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20secret")
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "all found what they observe" in out
    assert f"facts: http://{HOST}:{port}/v1/logs: nobody listens there" in out
    assert "secret" not in out


def test_doctor_does_not_guess_at_settings_it_cannot_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("A2A_FENCING_HEARTBEAT_INTERVAL", "soon")
    assert main(["doctor"]) == 2
    assert "A2A_FENCING_HEARTBEAT_INTERVAL='soon'" in only_line(capsys)
