"""Times of a forward-only schedule of a model by hand: check_forward.py REPORT.json.

F of stage s and microbatch i ends at max(end of F(s, i - 1), max over channels c -> s of end of F(c, i) + latency + bytes
/ bandwidth) + F(s): a stage per rank, nothing else in the way. Prints how many actions agree with the report.
"""
import json
import sys

report = json.load(open(sys.argv[1]))
assert report["forward_only"] and report["stages"] == report["ranks"]
costs, ends = report["costs"], {}
for microbatch in range(report["microbatches"]):
    for stage in range(report["stages"]):
        ready = [ends.get((stage, microbatch - 1), 0)]
        ready += [ends[channel["from"], microbatch] + channel["latency"] + channel["bytes"] / costs["bandwidth"]
                  for channel in report["channels"] if channel["to"] == stage]
        ends[stage, microbatch] = max(ready) + costs["F"][stage]
agree = 0
for program in report["programs"]:
    for action in program:
        if action["do"] == "F":
            want = ends[action["stage"], action["microbatch"]]
            assert abs(action["end"] - want) < 1e-6 * want, (action, want)
            agree += 1
assert abs(report["makespan"] - max(ends.values())) < 1e-6 * report["makespan"]
print(f"{agree} actions agree, {sum(costs['F'])} ns in all, {len(report['channels'])} channels")
