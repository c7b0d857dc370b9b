"""``python -m a2a_fencing_dashboard``: the command line without its script."""

from a2a_fencing_dashboard.cli import main

main()
