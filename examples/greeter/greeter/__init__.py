"""Greets whoever asks, in the name of the machine it runs on."""

from example_core import MOTTO

WORD = "Hello"


def greeting(node: str) -> str:
    """The line that is answered; a name without text is refused."""
    name = node.strip()
    if not name:
        raise ValueError("a greeter needs the name of its node")
    return f"{WORD} from {name}, {MOTTO}"
