"""Holds every word of the official SDKs' types against what interlingua does with it, and writes the coverage page."""
