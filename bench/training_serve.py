"""What processes whose steps are timed in turn have in common: a step each time that a line comes in, and what it took, as JSON."""
import json
import sys
import time


def serve(step):
    """`step` gives the loss. A line of "reset" would be a step more: weights go on."""
    print("ready", flush=True)
    for _ in sys.stdin:
        began, worked = time.perf_counter(), time.process_time()
        loss = step()
        print(json.dumps({"ms": (time.perf_counter() - began) * 1e3, "processor": (time.process_time() - worked) * 1e3, "loss": float(loss)}), flush=True)
