"""CPU seconds from an empty cache to the first result of each of Shoal's kernels. Each must stay below 25."""

import os
import subprocess
import sys
import tempfile

CASES = (
    ("fast kernel, the default rules", {}),
    ("fast kernel, other rules", {"ready_queues": False}),
    ("released rules", {"rules": "released"}),
    ("plain kernel, a failure", {"fail": "node 1 at 1us"}),
    ("plain kernel, damaged cells", {"ber": 1e-7}),
    ("plain kernel, two classes", {"classes": 2}),
    ("plain kernel, a transport", {"transport": "e2e"}),
    ("both kernels, a failure to come", {"fail": "node 1 at 1s"}),
)
PROGRAM = """
import time
import weft
rack = weft.Shoal(nodes=8, **{options})
weft.run(rack, weft.Poisson(load=0.5, sizes="fixed:2KB", flows=20), seed=1)
print(time.process_time())
"""


def main():
    print("CPU s  first result of")
    for name, options in CASES:
        with tempfile.TemporaryDirectory() as empty:
            call = [sys.executable, "-c", PROGRAM.replace("{options}", repr(options))]
            found = subprocess.run(
                call, env=os.environ | {"WEFT_CACHE": empty}, capture_output=True, text=True, check=True
            )
        print(f"{float(found.stdout):5.1f}  {name}", flush=True)


if __name__ == "__main__":
    main()
