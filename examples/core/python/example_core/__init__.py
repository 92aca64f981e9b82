"""What every service of the house says alike."""

MOTTO = "open to all"
