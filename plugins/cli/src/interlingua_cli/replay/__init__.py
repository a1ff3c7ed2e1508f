"""Decode recorded exchanges with the installed providers."""
