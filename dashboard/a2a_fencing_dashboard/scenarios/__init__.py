"""Named fencing scenarios on the real SDK, with the figures that each must show."""

from a2a_fencing_dashboard.scenarios.catalogue import SCENARIOS
from a2a_fencing_dashboard.scenarios.figures import Figures, Result, Scenario

__all__ = ["SCENARIOS", "Figures", "Result", "Scenario"]
