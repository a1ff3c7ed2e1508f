"""`python -m interlingua`: the command line, where its distribution is installed."""

from __future__ import annotations

import sys
from importlib.util import find_spec


def main() -> None:
    """Run the command line; without its distribution say how to install it, with exit code 1."""
    if find_spec("interlingua_cli") is None:
        sys.exit("the command line is a distribution of its own: pip install 'interlingua[cli]'")
    from interlingua_cli import main as run  # noqa: PLC0415  installed only with the extra

    run()


if __name__ == "__main__":
    main()
