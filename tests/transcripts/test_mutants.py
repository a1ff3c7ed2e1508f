"""Every broken reader and writer is found."""

from __future__ import annotations

import pytest

from interlingua_transcripts import SessionFormat
from tests.transcripts import mutants
from tests.transcripts.histories import writable_systems


@pytest.mark.parametrize("system", [*writable_systems(), *mutants.read_systems()], ids=lambda system: system.name)
def test_no_fault_is_found_in_the_systems_as_they_are(system: SessionFormat) -> None:
    assert mutants.fault(system, mutants.files_of(system.name)) == ""


@pytest.mark.parametrize(("step", "name"), list(mutants.mutants()))
def test_a_mutant_is_found(step: str, name: str) -> None:
    results = dict(mutants.tried(step, name))
    missed = [system for system, why in results.items() if why == ""]
    assert missed == list(mutants.SAME.get((step, name), ()))
    assert any(results.values())  # it is a fault in some system
