"""Make the table and the page of coverage: `python -m tests.tools.coverage [newest|install]`.

Without a word, the newest SDKs are taken, and table.json and docs/reference/coverage.md are written. `newest` writes
nothing: it prints the words of the newest SDKs that have no place yet, and those that the table does not have; exits
with 1 if one has no place. `install` installs the versions that the table names, for the test.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from tests.tools.coverage import sdks
from tests.tools.coverage.page import PAGE, page
from tests.tools.coverage.table_file import TABLE, new_words, read_table, unplaced, written


def main(words: list[str]) -> int:
    """Do what the words say; return the exit code."""
    if words == ["install"]:
        sdks.install(sdks.FOLDER, read_table()["sdks"])
        return 0
    folder = sdks.NEWEST if words == ["newest"] else sdks.FOLDER
    sdks.install(folder, {})
    table: dict[str, Any] = sdks.table(folder)
    lost = unplaced(table)
    print(json.dumps(table["sdks"]))
    if words == ["newest"]:
        print("\n".join(f"new: {word}" for word in new_words(read_table(), table)) or "no new words")
    elif not words:
        TABLE.write_text(written(table), encoding="utf-8")
        PAGE.write_text(page(table), encoding="utf-8")
    print("\n".join(lost) or "every word has a place")
    return int(bool(lost))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
