"""Vertex AI for interlingua: a plugin that serves Google's and Anthropic's formats under its own key."""
