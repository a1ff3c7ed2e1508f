"""Other libraries' test suites and cases, run through a gateway and, as the control, directly at a scripted service."""
