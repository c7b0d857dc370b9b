from __future__ import annotations

from pathlib import Path

import pytest
import yaml

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.yaml")), ids=lambda path: path.name)
def test_a_collector_uses_exactly_what_it_defines(path: Path) -> None:
    config = yaml.safe_load(path.read_text())
    pipelines = config["service"]["pipelines"].values()
    for part in ("receivers", "processors", "exporters"):
        used = {name for pipeline in pipelines for name in pipeline[part]}
        assert used == set(config[part])


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.py")), ids=lambda path: path.name)
def test_a_server_to_copy_is_instrumented_by_one_call(path: Path) -> None:
    text = path.read_text()
    compile(text, path, "exec")
    assert text.count("a2a_fencing.instrument()") == (
        "(AgentExecutor)" in text or "FencingMiddleware(" in text
    )


def test_every_example_explains_itself() -> None:
    folders = [folder for folder in EXAMPLES.iterdir() if folder.is_dir()]
    assert folders
    assert [folder for folder in folders if not (folder / "README.md").exists()] == []
