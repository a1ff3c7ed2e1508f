"""Ask about a picture: python image.py [MODEL] [FILE]."""

import base64
import sys
from pathlib import Path

from interlingua import Client, user

DOT = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYPgPAAEDAQAIicLsAAAAAElFTkSuQmCC")

client = Client(sys.argv[1] if len(sys.argv) > 1 else "anthropic:claude-haiku-4-5")
picture = Path(sys.argv[2]) if len(sys.argv) > 2 else DOT
print(client.send(user("What is in this picture?", images=[picture]), max_tokens=200).text)
