"""The command line: ``a2a-fencing COMMAND``."""

from a2a_fencing_dashboard.cli.main import main

__all__ = ["main"]
