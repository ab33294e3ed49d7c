"""One picture per cost model, drawn from the same functions as its tables, with its numbers as csv beside it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from weft import drawing
from weft.errors import BadInput
from weft.models import fpga, merchant, shoal, stardust, tdma
from weft.models.parts import Catalogue
from weft.units import Gbps, ms, us

FORMATS = tuple(f".{form}" for form in drawing.FORMATS)


@drawing.styled
def draw(what: str, path, **given) -> None:
    """Draw the picture of one model into `path`, an svg, pdf or png."""
    path = Path(path)
    if path.suffix not in FORMATS:
        raise BadInput(f"plot must end in one of {', '.join(FORMATS)}, not {path.name!r}")
    if not path.parent.is_dir():
        raise BadInput(f"plot must go into a folder that exists, not {str(path.parent)!r}")
    panels, paint = _PICTURES[what]
    figure, axes = drawing.figure(panels, height=3.6)
    data = paint(*axes, **given)
    drawing.Plot(figure, data).save(path)


def _line(ax, k, x, y, name, **style) -> list[dict]:
    """A line and its numbers."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    ax.plot(x, y, **{**drawing.bare_style(k), **style}, label=name)
    return [{"series": name, "x": a, "y": b} for a, b in zip(x.tolist(), y.tolist(), strict=True)]


def _level(ax, height, **style):
    ax.axhline(height, **{"color": "0.6", "linewidth": 0.8, **style})


def _label(ax, x, y, title, legend=True):
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    drawing.finish(ax, title, legend=legend)


def _shoal(ax, nodes=512, ports=64, catalogue=None):
    price = np.linspace(0, 0.6, 121)
    if shoal.PricedRack().switch_price(catalogue=catalogue) is None:
        raise BadInput("plot must have prices for packet switch, packet NIC and Shoal NIC, not only for some of them")
    data = []
    for k, nic in enumerate((2, 3)):
        rack = shoal.PricedRack(nodes=nodes, ports=ports, nic=nic)
        data += _line(ax, k, 100 * price, rack.cost_ratio(price, catalogue), f"Shoal NIC at {nic} packet NICs")
        for saving in (0, 0.4):
            ax.plot(100 * rack.switch_price(saving, catalogue), 1 - saving, "o", color=drawing.bare_style(k)["color"])
    _level(ax, 1)
    _level(ax, 0.6, linestyle="--")
    x, y = "price of a circuit switch (% of a packet switch)", "cost of Shoal over the packet network"
    _label(ax, x, y, f"{nodes} nodes (after Shoal, Fig. 11)")
    return data


def _merchant(ax, radix=24, catalogue=None):
    catalogue, data = catalogue or Catalogue.named(merchant.CATALOGUE), []
    for k, (network, what) in enumerate(merchant.NETWORKS.items()):
        steps = list(merchant.growth(radix, network))
        dollars = [catalogue.price(step.chips_and_optics()) / step.ports for step in steps]
        style = {**drawing.line_style(k), "markersize": 3}
        data += _line(ax, k, [step.ports for step in steps], dollars, f"network {network}: {what}", **style)
    drawing.from_zero(ax)
    _label(ax, "ports, growing pod by pod", "$ per port, chips and optics", f"Merchant silicon, {radix}-port chips")
    return data


def _stardust(ax, catalogue=None):
    hosts, data = np.unique(np.geomspace(1000, 1e6, 600).astype(int)), []
    for k, bundle in enumerate((1, 2, 4)):
        ratio = stardust.against(hosts, bundle, catalogue)["cost"]
        data += _line(ax, k, hosts, ratio, f"fat tree, bundle {bundle}")
    drawing.log_axis(ax, "x")
    drawing.from_zero(ax)
    _level(ax, 1)
    title = "Prices of September 2018 (after Stardust, Fig. 11a)"
    _label(ax, "hosts of 25 Gb/s", "cost of Stardust over the fat tree", title)
    return data


def _fpga(ax, rate=50 * Gbps, catalogue=None):
    catalogue, ports, data = catalogue or Catalogue.named(fpga.CATALOGUE), np.arange(8, 132, 4), []
    for k, design in enumerate(fpga.DESIGNS):
        bits = fpga.Design(design=design, ports=ports, rate=rate).memory_bits
        data += _line(ax, k, ports, bits / 1e6, design)
    for k, (name, part) in enumerate(catalogue.parts.items()):
        room = fpga.memory_of(part) / 1e6
        _level(ax, room)
        ax.annotate(name, (ports[0] + 8 * (k % 6), room), fontsize=7, color="0.4", va="bottom")
    _label(ax, "ports", "memory (Mb)", f"Ports of {rate // Gbps} Gb/s, eqs. (2) and (5)")
    return data


def _tdma(share, longest, guard=15 * us, hosts=24):
    """A panel for the share of the time and one for the wait: each its own axis."""
    slot = np.geomspace(10 * us, 10 * ms, 200)
    slots = tdma.Slots(slot=slot, guard=guard)
    data = _line(share, 0, slot / us, 100 * slots.efficiency, "time in which hosts may send (%)")
    data += _line(longest, 1, slot / us, slots.wait(hosts) / ms, f"longest wait among {hosts} hosts (ms)")
    for ax in (share, longest):
        drawing.log_axis(ax, "x")
    drawing.log_axis(longest, "y")
    share.set_ylim(0, 100)
    _label(share, "slot (µs)", "time in which hosts may send (%)", f"Guard of {guard / us:g} µs", legend=False)
    _label(longest, "slot (µs)", "longest wait (ms)", f"{hosts} hosts", legend=False)
    return data


def _compare(*panels, entries=()):
    """A panel for watts and one for dollars, each with its own axis; what nobody has printed is said."""
    spots, data = np.arange(len(entries)), []
    for panel, (what, unit) in zip(panels, (("watts", "W"), ("dollars", "$")), strict=True):
        values = [entry.per_gbps(what) for entry in entries]
        most = max((value for value in values if value), default=1.0)
        for spot, value in zip(spots, values, strict=True):
            if value:
                panel.barh(spot, value, height=0.7, color=drawing.PALETTE[0])
                panel.text(value, spot, f" {value:.3g}", va="center", fontsize=7)
            else:
                panel.text(0.02 * most, spot, "not printed", va="center", fontsize=7, color="0.5")
        panel.set_xlim(0, 1.25 * most)
        panel.set_xlabel(f"{unit} per Gb/s of bisection")
        panel.grid(axis="y", visible=False)
        panel.set_yticks(spots, [entry.name if panel is panels[0] else "" for entry in entries], fontsize=7)
        panel.set_ylim(len(entries) - 0.5, -0.5)
        data += [{"system": entry.name, "unit": panel.get_xlabel(), "value": value}
                 for entry, value in zip(entries, values, strict=True)]  # fmt: skip
    title = "Cost and power, each paper's own prices and years"
    panels[0].figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")
    return data


_PICTURES: dict[str, tuple[int, Callable]] = {
    "shoal": (1, _shoal),
    "merchant": (1, _merchant),
    "stardust": (1, _stardust),
    "fpga": (1, _fpga),
    "tdma": (2, _tdma),
    "compare": (2, _compare),
}
