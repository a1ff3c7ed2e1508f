"""Anthropic's Messages API for interlingua."""
