"""The doctor: what in a stored conversation would make a provider reject it, and the repair of it, nothing lost.

Never changes a file by itself and never sends anything; what a repair takes out it hands over, whole.
The command line comes in, and applications that keep conversations in files.
"""

from __future__ import annotations

from interlingua_cli.doctor.diff import difference
from interlingua_cli.doctor.examine import examine
from interlingua_cli.doctor.finding import Diagnosis, Finding
from interlingua_cli.doctor.target import ask_target
from interlingua_cli.doctor.writing import write_repaired

__all__ = ["Diagnosis", "Finding", "ask_target", "difference", "examine", "write_repaired"]



