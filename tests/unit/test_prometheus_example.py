"""The configuration for Prometheus and Alertmanager, judged by their own tools where there are any."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from a2a_fencing_dashboard.alerts.service import Alerts
from a2a_fencing_dashboard.alerts.settings import AlertSettings
from a2a_fencing_dashboard.ingest import Ingest
from a2a_fencing_dashboard.receiver.counts import Counts
from a2a_fencing_dashboard.receiver.metrics import Metrics
from a2a_fencing_dashboard.store import open_store

EXAMPLE = Path(__file__).parents[2] / "examples" / "prometheus"
RULES = EXAMPLE / "a2a-fencing.rules.yml"


def run(tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed (Debian: prometheus, prometheus-alertmanager)")
    return subprocess.run([tool, *arguments], cwd=EXAMPLE, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "command",
    [
        ("promtool", "check", "config", "prometheus.yml"),
        ("promtool", "check", "rules", RULES.name),
        ("promtool", "test", "rules", "a2a-fencing.rules.test.yml"),
        ("amtool", "check-config", "alertmanager.yml"),
    ],
    ids=" ".join,
)
def test_their_own_tools_agree(command: tuple[str, ...]) -> None:
    done = run(*command)

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tested() -> None:
    rules = [
        rule["alert"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
    ]
    tests = yaml.safe_load((EXAMPLE / "a2a-fencing.rules.test.yml").read_text())["tests"]
    fired = {
        case["alertname"] for test in tests for case in test["alert_rule_test"] if case["exp_alerts"]
    }

    assert fired == set(rules)


def test_rules_ask_for_metrics_that_there_are(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/facts.db")
    alerts = Alerts(store.outbox, AlertSettings())
    told = Metrics(store, Ingest(store), Counts(), alerts).answer("")[0].decode()
    store.close()

    asked = set(re.findall(r"\ba2a_fencing_\w+", RULES.read_text()))

    assert asked
    there = set(re.findall(r"^(a2a_fencing_\w+)", told, re.MULTILINE))
    assert asked <= there
