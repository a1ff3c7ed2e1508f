"""OpenAI for interlingua: the Responses API and, through the shared format, Chat Completions."""
