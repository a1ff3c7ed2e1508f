"""From received bytes to events and messages."""
