"""Flows from a file, and when each of them was done."""

from pathlib import Path

import weft
from weft import us

trace = weft.Trace(path=str(Path(__file__).with_name("trace.csv")))
result = weft.run(weft.Shoal(nodes=8), trace)
for flow, start, finish in zip(result.flows.id, result.flows.start, result.observation.finish, strict=True):
    print(f"flow {flow}: started at {start / us:.3f} us, done at {finish / us:.3f} us")
