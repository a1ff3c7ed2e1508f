"""Azure for interlingua: a plugin that serves OpenAI's and Anthropic's formats under its own key."""
