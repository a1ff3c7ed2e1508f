"""A support chat with a store and two providers: python support_chat.py CUSTOMER."""

import argparse
import json
from pathlib import Path

from interlingua import InterlinguaError
from interlingua_agents import tool
from interlingua_sessions import RoutingPolicy, Session

ORDERS = json.loads(Path(__file__).with_name("orders.json").read_text(encoding="utf-8"))
SYSTEM = "You answer customers of a shop for telescopes. Look orders up before you speak of them. Be brief."


@tool(side_effects="read")
def find_order(number: str) -> str:
    """Return what is known of an order."""
    return json.dumps(ORDERS[number]) if number in ORDERS else f"there is no order {number}"


def answer(session: Session, question: str) -> None:
    """Print the answer as it arrives, and which model gave it."""
    with session.stream(question, tools=[find_order], max_tokens=500) as events:
        for event in events:
            if event.type == "text_delta":
                print(event.text, end="", flush=True)
    print(f"\n  [{session.messages[-1].metadata.model}]")


def cost(session: Session) -> str:
    """Return the cost of all answers; those without a known price are counted apart."""
    spent = [message.usage.cost_usd for message in session.messages if message.metadata.usage is not None]
    known = sum(each for each in spent if each is not None)
    return f"{known:.4f} USD, {spent.count(None)} of {len(spent)} answers without a known price"


def main() -> None:
    """Read questions until an empty line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("customer")
    parser.add_argument("--model", default="anthropic:claude-haiku-4-5")
    parser.add_argument("--fallback", default="openai:gpt-5-mini")
    parser.add_argument("--store", default="chats.db")
    given = parser.parse_args()
    policy = RoutingPolicy(global_default=given.model, fallbacks=[given.fallback])
    with Session.open(given.store, f"support-{given.customer}", policy=policy, system=SYSTEM) as session:
        if session.messages:
            print(f"({len(session.messages)} messages so far)")
        while question := ask():
            try:
                if question == "/cost":
                    print(cost(session))
                elif question.startswith("/model "):
                    session.switch(question.removeprefix("/model "))
                else:
                    answer(session, question)
            except InterlinguaError as error:  # the question is stored; ask again, or change the model
                print(f"\n  [failed: {error}]")


def ask() -> str:
    """Return the next line, empty at the end."""
    try:
        return input("> ").strip()
    except EOFError:
        return ""


if __name__ == "__main__":
    main()
