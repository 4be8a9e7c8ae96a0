"""Compares pictures of a schedule with its report: check_schedule.py REPORT.json PICTURE... Bars, memory and messages."""
import json
import re
import sys
import xml.etree.ElementTree as xml


def bars_of_report(report):
    bars = []
    for rank, program in enumerate(report["programs"]):
        for action in program:
            parts = action.get("parts", [action])
            if parts[0]["do"] in "FBIW":
                name = ";".join(f"{part['stage']}{part['do']}{part['microbatch']}" for part in parts)
                bars.append((rank, name, action["start"], action["end"]))
    return sorted(bars)


def bars_of_svg(text):
    root = xml.fromstring(text)
    bars = [bar for bar in root.iter("{http://www.w3.org/2000/svg}rect") if bar.get("class") == "bar"]
    left, width = 70, 1120
    ends = max(float(bar.get("data-end")) for bar in bars)
    for bar in bars:
        start, end = float(bar.get("data-start")), float(bar.get("data-end"))
        assert abs(float(bar.get("x")) - (left + width * start / ends)) < .01, bar.attrib
        assert abs(float(bar.get("width")) - width * (end - start) / ends) < .01, bar.attrib
    return sorted((int(bar.get("data-rank")), bar.get("data-action"), float(bar.get("data-start")), float(bar.get("data-end")))
                  for bar in bars)


def check_trace(report, trace):
    events = trace["traceEvents"]
    bars = sorted((event["tid"], event["name"], event["ts"] / 1e3, (event["ts"] + event["dur"]) / 1e3)
                  for event in events if event["ph"] == "X")
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert len(starts) == len(ends) == report["messages"], (len(starts), report["messages"])
    assert all(starts[arrow]["ts"] < ends[arrow]["ts"] and starts[arrow]["tid"] != ends[arrow]["tid"] for arrow in starts)
    for rank, peak in enumerate(report["peak"]["memory"]):
        held = [event["args"]["held"] for event in events if event["ph"] == "C" and event["tid"] == rank]
        assert abs(max(held) - peak) < 1e-9 and abs(held[-1]) < 1e-9, (rank, held)
    return bars


def main():
    with open(sys.argv[1]) as file:
        report = json.load(file)
    expected = bars_of_report(report)
    for path in sys.argv[2:]:
        with open(path) as file:
            text = file.read()
        if path.endswith(".json"):
            bars = check_trace(report, json.loads(text))
        else:
            assert path.endswith(".svg") or not re.search(r"(src|href)=", text), "a page that loads something"
            bars = bars_of_svg(text if path.endswith(".svg") else text[text.index("<svg"):text.index("</svg>") + 6])
        assert len(bars) == len(expected), (path, len(bars), len(expected))
        for got, want in zip(bars, expected):
            assert got[:2] == want[:2] and all(abs(a - b) < 1e-6 for a, b in zip(got[2:], want[2:])), (path, got, want)
    print(f"{len(expected)} bars in each of {len(sys.argv) - 2} pictures")


main()
