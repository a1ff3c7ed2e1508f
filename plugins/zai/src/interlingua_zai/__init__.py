"""Z.ai for interlingua: the GLM models, over the shared Chat Completions format."""
