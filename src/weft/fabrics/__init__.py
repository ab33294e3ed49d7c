"""One room per system. `FABRICS` names them; a room is imported when it is asked for: kernels are slow to load."""

FABRICS = {
    "shoal": "weft.fabrics.shoal:Shoal",
    "crossbar": "weft.fabrics.crossbar:Crossbar",
    "packet": "weft.fabrics.packet:Packet",
    "merchant": "weft.fabrics.merchant.fabric:Merchant",
    "torus": "weft.fabrics.torus:Torus",
    "tdma": "weft.fabrics.tdma:TDMA",
    "ideal": "weft.fabrics.ideal:Ideal",
    "stardust": "weft.fabrics.stardust:Stardust",
}
