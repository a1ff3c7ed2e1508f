"""Print the kill matrix: each broken adapter, the rule that must catch it, and which rules do.

`python -m tests.contract.broken [--seeds 3] [--named]`; exit code 1 when a mutant gets past its rule.
"""

from __future__ import annotations

import argparse
import sys

from interlingua.contract import run
from interlingua.contract.rules import ALL
from tests.contract.broken import SHELF


def main() -> int:
    """Run the shelf."""
    parser = argparse.ArgumentParser(description="Print the kill matrix.")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--named", action="store_true", help="run only the rule that each row names")
    asked = parser.parse_args()
    missed = 0
    for seed in range(asked.seeds):
        for mutant in SHELF:
            rules = [rule for rule in ALL if rule.number == mutant.rule or not asked.named]
            failed = [result.rule.number for result in run(mutant.subject(seed), rules).failed]
            caught = mutant.rule in failed
            missed += not caught
            others = " ".join(number for number in failed if number != mutant.rule)
            print(f"seed {seed}  {mutant.rule} {'killed' if caught else 'MISSED'}  {mutant.name:<50} {others}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
