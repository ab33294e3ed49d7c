"""Tables IV to VI: link capacity, aggregate bandwidth, and latency by eqs. (6) and (7) with the measured clocks."""

from weft.fabrics.crossbar import Crossbar
from weft.fabrics.crossbar.timing import DESIGNS, formula
from weft.models import tables
from weft.papers.fpga import Claim, check_scale
from weft.units import ns

COLUMNS = ("design", "ports", "bits", "mhz", "capacity_gbps", "printed_ns", "stages_ns", "formula_ns", "fast_ns")


def study(scale="small"):
    """The designs that Table V has a clock for, as fabrics with log2 N iterations; nothing is run."""
    check_scale(scale)
    built = []
    for kind in ("shared", "gcq"):
        for n in (8, 16, 32, 64):
            for bits in (256, 640, 1280):
                name = f"{DESIGNS[kind]}, {n} ports, {bits} bit"
                if any(row["name"] == name and "printed" in row for row in tables.printed("fpga")["VI"]["row"]):
                    built.append(Crossbar(ports=n, buffers=kind, cell=bits // 8, iterations=n.bit_length() - 1))
    return built


def table(scale="small") -> list[dict]:
    """A row per design: what is printed, the sum of our stages, and the paper's formula in both readings."""
    rows = []
    for fabric in study(scale):
        kind, n, bits = fabric.buffers, fabric.ports, fabric.cell * 8
        design = DESIGNS[kind]
        mhz = tables.value("fpga", "V", f"clock, {design}, {n} ports, {bits} bit")
        model = list(formula(kind, n, fabric.group, fabric.clock).values())
        rows.append({
            "design": design, "ports": n, "bits": bits, "mhz": mhz, "capacity_gbps": mhz * bits / 1000,
            "printed_ns": tables.value("fpga", "VI", f"{design}, {n} ports, {bits} bit"),
            "stages_ns": fabric.unloaded / ns, "formula_ns": model[0], "fast_ns": model[-1],
        })  # fmt: skip
    return rows


IMPLEMENTED = {  # Table IV: ports of the largest design that was built, by line rate in Gb/s
    "islip": {10: 32, 25: 16, 50: 8},
    "smislip": {10: 64, 25: 32, 50: 32},
    "gcq": {10: 64, 25: 64, 50: 32},
}


def aggregate() -> list[dict]:
    """Table IV as bandwidth: line rate times ports of the largest design that was built."""
    return [
        {"design": design, "line_gbps": rate, "ports": n, "aggregate_tbps": rate * n / 1000}
        for design, sizes in IMPLEMENTED.items()
        for rate, n in sizes.items()
    ]


def draw(table):
    """Latency against ports, 256-bit designs: printed and modelled."""
    from weft.report.plots import plot

    rows = []
    for row in table:
        if row["bits"] == 256:
            rows.append({"ports": row["ports"], "latency": row["printed_ns"], "by": f"{row['design']}, Table VI"})
            rows.append({"ports": row["ports"], "latency": row["stages_ns"], "by": f"{row['design']}, stages"})
    return plot(rows, x="ports", y="latency", by="by", xscale="log", yscale="linear", title="Port to port latency (ns)")


def _best_aggregate(_):
    """Table IV says which designs were built; nothing here builds one."""
    rows = aggregate()
    most = max(row["aggregate_tbps"] for row in rows)
    who = ", ".join(f"{r['design']} {r['ports']} x {r['line_gbps']}G" for r in rows if r["aggregate_tbps"] == most)
    same = most == 1.6 and who == "gcq 64 x 25G"
    return "printed" if same else False, f"line rate times ports of Table IV, {most} Tb/s at most: {who}"


def _capacity(table):
    """Table V's clocks times the width: whether the sentence follows from the table, not whether the table is right."""
    best = {}  # over the widths that could be built
    for row in table:
        key = row["design"], row["ports"]
        best[key] = max(best.get(key, 0), row["capacity_gbps"])
    lead = all(best["smislip", n] > best["gcq", n] for n in (8, 16, 32)) and best["smislip", 64] < best["gcq", 64]
    shown = (f"{n} ports: {best['smislip', n]:.2f} and {best['gcq', n]:.2f}" for n in (8, 16, 32, 64))
    return "printed" if lead else False, "Table V's clock times width, Gb/s of SMiSLIP and GCQ, " + "; ".join(shown)


def _within(design, column, percent, fitted=False):
    def check(table):
        off = [100 * (row[column] / row["printed_ns"] - 1) for row in table if row["design"] == design]
        good = sum(abs(o) <= percent for o in off)
        span = f"all from {min(off):+.1f} % to {max(off):+.1f} %"
        holds = "fitted" if fitted and good == len(off) else good == len(off)
        return holds, f"{good} of {len(off)} within {percent} %, {span}"

    return check


CLAIMS = [
    Claim("fpga.c08", "the best aggregate bandwidth is 1.6 Tb/s, GCQ with 64 ports at 25 Gb/s", _best_aggregate),
    Claim("fpga.c09", "up to 32 ports SMiSLIP supports a higher link capacity than GCQ, beyond a lower one", _capacity),
    Claim("fpga.c11", "SMiSLIP latency is eq. (6), with C_MBS = 3 fitted", _within("smislip", "formula_ns", 0.1, True)),
    Claim("fpga.c12", "GCQ latency is eq. (7) with registers on the slow clock", _within("gcq", "formula_ns", 5)),
    Claim("fpga.c12", "GCQ latency is eq. (7) with registers on the fast clock", _within("gcq", "fast_ns", 5)),
    Claim("fpga.c12", "GCQ latency is the sum of our stages", _within("gcq", "stages_ns", 5)),
]
