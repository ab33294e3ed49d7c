"""Presets of transports for a reader."""

from weft.parameters import parameters

ABOUT = ("transport", "source", "from")  # what a preset says of itself rather than changes


def presets_text(known: dict[str, dict]) -> str:
    """Every preset with what it changes and where that comes from."""
    lines = []
    for name, values in known.items():
        changed = ", ".join(f"{key} {value}" for key, value in values.items() if key not in ABOUT)
        lines += [name, f"    {changed or 'defaults'}", f"    {values['source']}"]
    return "\n".join(lines)


def preset_text(name: str, chosen, origins: dict[str, str]) -> str:
    """Every value of the settings `chosen`, as a user would type it, with its origin."""
    known = {one.name: one for one in parameters(type(chosen))}
    rows = [f"{key:15} {known[key].show(getattr(chosen, key)):>10}  {origin}" for key, origin in origins.items()]
    return "\n".join([f"{name}: {chosen.source}", "", *rows])
