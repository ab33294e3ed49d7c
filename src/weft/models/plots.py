"""One picture per cost model, drawn from the same functions as its tables."""

from pathlib import Path
from typing import Any

import numpy as np

from weft.errors import BadInput
from weft.files import replaced
from weft.models import fpga, merchant, shoal, stardust, tdma
from weft.models.parts import Catalogue
from weft.units import Gbps, ms, us

FORMATS = (".svg", ".png", ".pdf")


def draw(what: str, path, **given) -> None:
    """Draw the picture of one model into `path`, an svg, png or pdf."""
    path = Path(path)
    if path.suffix not in FORMATS:
        raise BadInput(f"plot must end in one of {', '.join(FORMATS)}, not {path.name!r}")
    if not path.parent.is_dir():
        raise BadInput(f"plot must go into a folder that exists, not {str(path.parent)!r}")
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with matplotlib.rc_context({"svg.hashsalt": "weft", "axes.spines.top": False, "axes.spines.right": False}):
        figure, axes = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")
        _PICTURES[what](axes, **given)
        try:
            with replaced(path) as fresh, open(fresh, "wb") as file:
                form = path.suffix.removeprefix(".")
                figure.savefig(file, format=form, metadata={"Date": None} if form == "svg" else None)
        finally:
            pyplot.close(figure)


def _shoal(axes, nodes=512, ports=64, catalogue=None):
    price = np.linspace(0, 0.6, 121)
    if shoal.PricedRack().switch_price(catalogue=catalogue) is None:
        raise BadInput("plot must have prices for packet switch, packet NIC and Shoal NIC, not only for some of them")
    for nic in (2, 3):
        rack = shoal.PricedRack(nodes=nodes, ports=ports, nic=nic)
        (line,) = axes.plot(100 * price, rack.cost_ratio(price, catalogue), label=f"Shoal NIC at {nic} packet NICs")
        for saving in (0, 0.4):
            axes.plot(100 * rack.switch_price(saving, catalogue), 1 - saving, "o", color=line.get_color())
    axes.axhline(1, color="0.7", lw=0.8)
    axes.axhline(0.6, color="0.7", lw=0.8, ls="--")
    axes.set(
        xlabel="price of a circuit switch, % of a packet switch",
        ylabel="cost of Shoal over the packet network",
        title=f"{nodes} nodes (after Shoal, Fig. 11)",
    )
    axes.legend(frameon=False)


def _merchant(axes, radix=24, catalogue=None):
    catalogue = catalogue or Catalogue.named(merchant.CATALOGUE)
    for network, what in merchant.NETWORKS.items():
        ports, dollars = [], []
        for step in merchant.growth(radix, network):
            ports.append(step.ports)
            dollars.append(catalogue.price(step.chips_and_optics()) / step.ports)
        axes.plot(ports, dollars, ".-", label=f"network {network}: {what}")
    axes.set(
        xlabel="ports, growing pod by pod",
        ylabel="dollars per port, chips and optics",
        ylim=(0, None),
        title=f"merchant silicon, {radix}-port chips",
    )
    axes.legend(frameon=False)


def _stardust(axes, catalogue=None):
    hosts = np.unique(np.geomspace(1000, 1e6, 600).astype(int))
    for bundle in (1, 2, 4):
        axes.semilogx(hosts, stardust.against(hosts, bundle, catalogue)["cost"], label=f"fat tree, bundle {bundle}")
    axes.axhline(1, color="0.7", lw=0.8)
    axes.set(
        xlabel="hosts of 25 Gb/s",
        ylabel="cost of Stardust over the fat tree",
        ylim=(0, None),
        title="prices of September 2018 (after Stardust, Fig. 11a)",
    )
    axes.legend(frameon=False)


def _fpga(axes, rate=50 * Gbps, catalogue=None):
    catalogue = catalogue or Catalogue.named(fpga.CATALOGUE)
    ports = np.arange(8, 132, 4)
    for design in fpga.DESIGNS:
        axes.plot(ports, fpga.Design(design=design, ports=ports, rate=rate).memory_bits / 1e6, label=design)
    for i, (name, part) in enumerate(catalogue.parts.items()):
        room = fpga.memory_of(part) / 1e6
        axes.axhline(room, color="0.7", lw=0.8)
        axes.annotate(name, (ports[0] + 8 * (i % 6), room), fontsize=7, color="0.4", va="bottom")
    axes.set(xlabel="ports", ylabel="memory, Mb", title=f"{rate // Gbps} Gb/s ports, eqs. (2) and (5)")
    axes.legend(frameon=False)


def _tdma(axes, guard=15 * us, hosts=24):
    slot = np.geomspace(10 * us, 10 * ms, 200)
    slots = tdma.Slots(slot=slot, guard=guard)
    axes.semilogx(slot / us, 100 * slots.efficiency, label="time in which hosts may send, %")
    axes.set(xlabel="slot, us", ylabel="%", ylim=(0, 100), title=f"guard of {guard / us:g} us")
    other = axes.twinx()
    other.loglog(slot / us, slots.wait(hosts) / ms, color="C1", label=f"longest wait among {hosts} hosts, ms")
    other.set_ylabel("ms")
    lines = [*axes.get_lines(), *other.get_lines()]
    axes.legend(lines, [line.get_label() for line in lines], frameon=False, loc="lower right")


def _compare(axes, entries=()):
    """A panel for watts and one for dollars, each with its own axis; what nobody has printed is said."""
    figure = axes.figure
    axes.remove()
    spots = np.arange(len(entries))
    for panel, (what, unit) in zip(figure.subplots(1, 2, sharey=True), (("watts", "W"), ("dollars", "$")), strict=True):
        values = [entry.per_gbps(what) for entry in entries]
        most = max((value for value in values if value), default=1.0)
        for spot, value in zip(spots, values, strict=True):
            if value:
                panel.barh(spot, value, height=0.7, color="#0072B2")
                panel.text(value, spot, f" {value:.3g}", va="center", fontsize=7)
            else:
                panel.text(0.02 * most, spot, "not printed", va="center", fontsize=7, color="0.5")
        panel.set_xlim(0, 1.25 * most)
        panel.set_xlabel(f"{unit} per Gb/s of bisection")
        panel.grid(axis="x", color="0.9")
        panel.set_axisbelow(True)
    figure.axes[0].set_yticks(spots, [entry.name for entry in entries], fontsize=7)
    figure.axes[0].set_ylim(len(entries) - 0.5, -0.5)
    figure.suptitle("Cost and power, each paper's own prices and years", x=0.01, ha="left", fontsize=10)


_PICTURES: dict[str, Any] = {
    "shoal": _shoal,
    "merchant": _merchant,
    "stardust": _stardust,
    "fpga": _fpga,
    "tdma": _tdma,
    "compare": _compare,
}
