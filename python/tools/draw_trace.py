"""Draws the trace of a call, `cleave-run --trace t.json`, as a picture for a page.

Usage: draw_trace.py TRACE.json OUT.svg

A lane per rank and stream, time from left to right, a color per kind of command; names stand in what is wide enough, and
over what the mouse is on. Equal traces give equal pictures. Colors are readable on light and on dark ground.
"""
import json
import re
import sys
from html import escape

WIDTH, LEFT, RIGHT, TOP, LANE, GAP = 960, 84, 12, 34, 30, 8
# What a bar is, by its name, of a kernel `launch` and the kernel's; the first that fits.
KINDS = [
    ("waiting", "waits for the others", r"finish "),
    ("contraction", "contraction or convolution", r"launch (matmul|conv|einsum)"),
    ("attention", "attention", r"launch attention"),
    ("kernel", "other kernels", r"launch "),
    ("copy", "copy", r"copy"),
    ("meeting", "collective starts or moves on", r""),
]
STYLE = """\
  text { font: 12px sans-serif; fill: #6e7781 }
  .name { font-size: 10px; fill: #ffffff } .name.on-waiting { fill: #24292f }
  .grid { stroke: #8c959f; stroke-opacity: .35 }
  .contraction { fill: #2f6fd6 } .attention { fill: #8250df } .kernel { fill: #1a7f37 }
  .copy { fill: #6e7781 } .meeting { fill: #cf222e } .waiting { fill: #d4a72c }
  @media (prefers-color-scheme: dark) { text { fill: #d0d7de } }
"""


def kind(event):
    name = "launch " * (event["cat"] == "launch,kernel") + event["name"]
    return next(key for key, _, pattern in KINDS if re.match(pattern, name))


def step(microseconds):
    """Between two marks of the axis: 1, 2 or 5 times a power of ten, at most ten of them."""
    size = 1
    while microseconds / size > 10:
        size = size * 5 // 2 if str(size)[0] == "2" else size * 2
    return size


def draw(trace):
    """The picture, as text."""
    # Of a launch the bar of its kernel, which is within that of its kind.
    events = [event for event in trace["traceEvents"] if event["ph"] == "X" and event["cat"] != "launch"]
    lanes = sorted({(event["pid"], event["tid"]) for event in events})
    streams = {event["tid"]: event["args"]["name"].partition(" ")[2] for event in trace["traceEvents"] if event["name"] == "thread_name"}
    begin = min(event["ts"] for event in events)
    span = max(event["ts"] + event["dur"] for event in events) - begin
    scale = (WIDTH - LEFT - RIGHT) / span
    bottom = TOP + len(lanes) * (LANE + GAP)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 26}" width="{WIDTH}">',
             f"<style>\n{STYLE}</style>"]
    at = LEFT
    for key, title, _ in KINDS:
        if any(kind(event) == key for event in events):
            lines.append(f'<rect class="{key}" x="{at}" y="8" width="12" height="12" rx="2"/><text x="{at + 17}" y="18">{title}</text>')
            at += 36 + 6.5 * len(title)
    mark = 0
    while mark <= span:
        x = LEFT + mark * scale
        text = f"{mark / 1000:g} ms" if span >= 1000 else f"{mark} us"
        lines.append(f'<line class="grid" x1="{x:.1f}" y1="{TOP - 4}" x2="{x:.1f}" y2="{bottom}"/>'
                     f'<text x="{x:.1f}" y="{bottom + 15}" text-anchor="middle">{text}</text>')
        mark += step(span)
    for number, (rank, thread) in enumerate(lanes):
        y = TOP + number * (LANE + GAP)
        title = f"rank {rank}" + (f", {streams[thread]}" if set(streams.values()) != {"0"} else "")
        lines.append(f'<text x="{LEFT - 8}" y="{y + LANE / 2 + 4:.0f}" text-anchor="end">{title}</text>')
        for event in events:
            if (event["pid"], event["tid"]) != (rank, thread):
                continue
            width = max(event["dur"] * scale, 0.6)
            x = LEFT + (event["ts"] - begin) * scale
            name, node = escape(event["name"]), escape(event["args"]["node"])
            lines.append(f'<rect class="{kind(event)}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{LANE}">'
                         f'<title>{name}, {event["dur"]:.0f} us {node}</title></rect>')
            label = event["name"].partition(" ")[2] or event["name"]
            if width > 5.5 * len(label) + 6:
                lines.append(f'<text class="name on-{kind(event)}" x="{x + 4:.1f}" y="{y + LANE / 2 + 3.5:.1f}">{escape(label)}</text>')
    return "\n".join([*lines, "</svg>\n"])


def main():
    with open(sys.argv[1]) as file:
        text = draw(json.load(file))
    with open(sys.argv[2], "w") as file:
        file.write(text)


if __name__ == "__main__":
    main()
