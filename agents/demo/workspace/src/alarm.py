"""Raise an alarm when a gauge reads higher than it should."""

DATUM = {
    "north-mole": 0.00,
    "old-bridge": 0.30,
    "saltmarsh": 0.10,
}

ALARM_LEVEL = {
    "north-mole": 3.20,
    "old-bridge": 2.90,
    "saltmarsh": 2.60,
}


def height(station: str, reading: float) -> float:
    """Metres above the station's datum, from a raw reading."""
    return reading - DATUM[station]


def alarm(station: str, reading: float) -> bool:
    return height(station, reading) >= ALARM_LEVEL[station]
