"""What a small error is."""
from dataclasses import dataclass


@dataclass
class Edit:
    name: str
    file: str
    old: str
    new: str
    # What is wrong with it, as a user would see it.
    breaks: str
    # `suite` or `suite:filter`, tried in this order.
    suites: list
    # Where `old` stands more than once: the first one behind this text is meant.
    after: str = ""
