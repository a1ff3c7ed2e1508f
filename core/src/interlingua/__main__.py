"""`python -m interlingua`: run the command line, if a distribution provides one."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points


def main() -> None:
    """Run the program of the entry point group `interlingua.main`; exit with code 1 if the group is empty."""
    programs = entry_points(group="interlingua.main")
    if not programs:
        sys.exit("the command line is not installed: pip install 'interlingua[cli]'")
    next(iter(programs)).load()()


if __name__ == "__main__":
    main()
