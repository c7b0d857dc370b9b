"""The rules, as data: what each says, and what judges which part of a history by it."""

from __future__ import annotations

from typing import Final

from a2a_fencing.checker.conclusion import Check, Rule
from a2a_fencing.checker.rules import answers, dispatches, executions, store, terminal, versions

RULES: Final[dict[str, Rule]] = {
    rule.name: rule
    for rule in (
        terminal.OVERWRITTEN,
        terminal.MUTATED,
        answers.CONTRADICTED,
        answers.CUT,
        answers.PUSH,
        dispatches.AFTER_TERMINAL,
        dispatches.DOUBLE_EFFECT,
        executions.CONCURRENT,
        executions.INEFFECTIVE,
        executions.ABANDONED,
        versions.DOUBLE_APPLY,
        versions.FORK,
        versions.UNSEEN,
        store.UNFENCED,
    )
}
"""Every rule by its name."""

CHECKS: Final[tuple[Check, ...]] = (
    *terminal.CHECKS,
    *versions.CHECKS,
    *answers.CHECKS,
    *executions.CHECKS,
    *dispatches.CHECKS,
)
"""What is judged of a task. `store.unfenced` is of a store, not of a task."""
