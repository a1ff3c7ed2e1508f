"""interlingua-bulk: files of many requests, sent once each and resumable at any kill."""
