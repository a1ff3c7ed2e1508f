"""The Responses API: requests, answers and streams."""
