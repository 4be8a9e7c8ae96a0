"""Holds what examples/deploy.cpp printed against reports of `cleave shard` and `cleave schedule`. Usage: deployed.py TEXT REPORT SCHEDULE"""
import json
import re
import sys


def main():
    text = open(sys.argv[1]).read()
    report, schedule = (json.load(open(path)) for path in sys.argv[2:])
    time = report["time"]
    wanted = {
        "us a rank": (time["compute_ns"] + time["communication_ns"] - time.get("overlapped_ns", 0)) / 1000,
        "bytes": sum(total["wire_bytes_per_rank"] for total in report["totals"].values()),
        "us of the schedule": schedule["makespan"] / 1000,
    }
    said = re.search(r"nvlink: (\S+) us, (\d+) bytes(?s:.*)stages, (\S+) us", text)
    for (what, want), got in zip(wanted.items(), said.groups()):
        # Printed with six digits.
        assert want > 0 and abs(float(got) - want) <= 1e-5 * want, f"{what}: {got}, and the command says {want}"


if __name__ == "__main__":
    main()
