"""Draw docs/assets/demo.svg, the picture of `make demo` in the README: `python -m tests.tools.demo_picture`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "assets" / "demo.svg"
WIDTH = 120
FONT_FACE = re.compile(r"@font-face \{\{.*?\}\}\s*", re.DOTALL)  # it would be fetched from another host


def draw() -> str:
    """Return the demo's first two turns, with the swap between them, as an SVG in the terminal's own colours."""
    program = Path(sys.executable).with_name("interlingua")
    env = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "TERM": "xterm-256color", "INTERLINGUA_CONFIG": ""}
    env.pop("NO_COLOR", None)
    printed = subprocess.run([program, "demo"], env=env, capture_output=True, text=True, check=True).stdout
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True, color_system="truecolor")
    text = Text.from_ansi(printed.strip("\n"))
    console.print(text[: text.plain.index("\nturn 3")])
    return console.export_svg(
        title="make demo", code_format=FONT_FACE.sub("", CONSOLE_SVG_FORMAT), unique_id="demo", font_aspect_ratio=0.61
    )


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
