"""The doctor: find what would make a provider reject a stored conversation, and repair it without losing anything."""

from __future__ import annotations

from interlingua_cli.doctor.examine import check_target, examine
from interlingua_cli.doctor.findings import Diagnosis, DoctorFinding
from interlingua_cli.doctor.repair import diff_repair, write_repaired

__all__ = ["Diagnosis", "DoctorFinding", "check_target", "diff_repair", "examine", "write_repaired"]
