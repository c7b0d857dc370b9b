"""Judges a history: facts in, findings out. Pure: no clock, no I/O, no OpenTelemetry.

`check` judges a whole history. A `Checker` judges one that grows, and says what each batch of facts
changed. `tell` tells a finding step by step, `RULES` what each rule says.

What is guaranteed, for facts in any order, batching and repetition:

- A finding is *proven* when the order of versions, or one replica's own order, shows it, and no fact
  that is known to be missing could refute it. Wall clocks of two replicas only ever give *suspected*.
- A missing fact never makes a task look fine: its verdict is *unknown*, and `Report.doubts` says why.
- A rule that fails gives *unknown*, and the failure as a doubt; the history is judged by the others.

What is not: a replica that dies takes with it what it had recorded after its last delivered fact, and
nobody can number that; the history then looks complete. What writers without instrumentation did is told
from the versions they leave (unseen-writer), never guessed.
"""

from a2a_fencing.checker.checker import Checker, check
from a2a_fencing.checker.conclusion import Rule
from a2a_fencing.checker.report import Changes, Finding, Gap, Report
from a2a_fencing.checker.rules import RULES
from a2a_fencing.checker.story import tell

__all__ = ["RULES", "Changes", "Checker", "Finding", "Gap", "Report", "Rule", "check", "tell"]
