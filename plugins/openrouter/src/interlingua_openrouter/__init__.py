"""OpenRouter for interlingua: many vendors' models behind one Chat Completions endpoint."""
