"""Amazon Bedrock's Converse API for interlingua."""
