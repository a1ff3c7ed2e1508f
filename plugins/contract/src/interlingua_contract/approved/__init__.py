"""Approved results: what each hook returns in fixed scenes, kept beside the cassettes and read by the plugin's author.

`histories` has the scenes, `observe` calls the hooks, `values` makes their results short JSON, and `table` writes and
compares `approved.jsonl`.
"""
