"""The doctor: what in a stored conversation would make a provider reject it, and the repair of it, nothing lost.

Never changes a file by itself and never sends anything; what a repair takes out it hands over, whole.
The command line comes in, and applications that keep conversations in files.
"""

from __future__ import annotations

from interlingua_cli.doctor.examine import check_target, examine
from interlingua_cli.doctor.findings import Diagnosis, Finding
from interlingua_cli.doctor.repair import diff_repair, write_repaired

__all__ = ["Diagnosis", "Finding", "check_target", "diff_repair", "examine", "write_repaired"]


