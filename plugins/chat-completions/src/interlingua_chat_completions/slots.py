"""Where each kind of block stands in a message of this wire, fixed so that both roads agree (DESIGN 5).

Never holds a value of an answer: the wire gives kinds of content their own fields, so only their order is ours to set.
The reader of answers comes in.
"""

from __future__ import annotations

THINKING = 0
TEXT = 1
# calls stand from 2 on (calls.py); what follows them needs indexes no number of calls can reach
REFUSAL = 1_000_000
AUDIO = 1_000_001
IMAGES = 1_000_100
REDACTED = 2_000_000
REASONED = 2_500_000
PARTS = 3_000_000
HOSTED = 4_000_000
CHOICES = 5_000_000
