"""A server whose reader may leave: python disconnect.py [MODEL] [PORT], then echo QUESTION | nc localhost 8000."""

import asyncio
import sys
from contextlib import suppress

from interlingua import AsyncClient, Message, user

client = AsyncClient(sys.argv[1] if len(sys.argv) > 1 else "anthropic:claude-haiku-4-5")
history: list[Message] = []


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send the answer as it arrives; if the reader leaves, stop the model and keep what arrived."""
    history.append(user((await reader.readline()).decode()))
    async with client.stream(history, max_tokens=400) as stream:
        with suppress(ConnectionError):
            async for text in stream.text_stream:
                writer.write(text.encode())
                await writer.drain()
    history.append(stream.partial)
    print(f"{stream.partial.status}: {len(stream.partial.text)} characters are kept", flush=True)
    writer.close()


async def main(port: int) -> None:
    """Serve on a port of this machine."""
    await (await asyncio.start_server(answer, "127.0.0.1", port)).serve_forever()


asyncio.run(main(int(sys.argv[2]) if len(sys.argv) > 2 else 8000))
