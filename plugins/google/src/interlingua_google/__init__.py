"""Google's Gemini API for interlingua."""
