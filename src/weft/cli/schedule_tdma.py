"""`weft schedule tdma`: one round of a fabric manager."""

from weft.cli.options import print_json
from weft.units import show_size, show_time

SHOWN, PAIRS = 8, 8  # slots and grants of a slot that are printed before they are cut short


def show(round, json: bool) -> None:
    """Print the schedule of a round."""
    facts = round.facts()
    if json:
        print_json(facts, dense=True)
    else:
        print(_text(round, facts))


def _text(planning, facts) -> str:
    bound, granted, wanted = facts["bound_slots"], show_size(facts["granted_bytes"]), show_size(facts["wanted_bytes"])
    late = "" if facts["in_time"] else ": too long for a round"
    lines = [
        f"{facts['hosts']} hosts, {facts['topology']}, {facts['scheduler']}",
        "",
        f"round     {show_time(planning.round)}: {facts['round_slots']} slots of {show_time(planning.slot)} with "
        f"{show_time(planning.guard)} between them, {facts['used_slots']} used",
        f"granted   {granted} of {wanted} in {facts['grants']} grants",
        f"links     {100 * facts['throughput']:.2f} % of what hosts could send in the slots used",
        f"wait      {facts['longest_wait_slots']} slots at most for a host's next one, "
        + ("without a bound" if bound is None else f"{bound} can be promised ({show_time(bound * planning.cycle)})"),
        f"computed  in {facts['compute_ms']:.3g} ms, the slowest of {planning.repeat} rounds in "
        f"{facts['compute_ms_worst']:.3g} ms{late}",
        "",
    ]
    for t, grants in enumerate(facts["slots"][:SHOWN]):
        some = "  ".join(f"{src}>{dst}" for src, dst, _ in grants[:PAIRS])
        lines.append(f"t={t:<3} {some}{' …' if len(grants) > PAIRS else ''}")
    if facts["round_slots"] > SHOWN:
        lines.append("…")
    return "\n".join(lines)
