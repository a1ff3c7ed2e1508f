"""The systems this distribution brings, one module each."""
