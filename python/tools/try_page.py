"""Opens a page of `cleave schedule --draw` in Chromium and moves the pointer over its bars: does it show what it points at?

Usage: try_page.py FILE.html [PICTURE.png]

For up to 50 bars: the tip must name the rank, action and times that the bar carries, lie within the window, and be gone beside the bars.
With a second name, a picture of the whole page is left there, to be looked at. A check by hand: no suite needs a browser. The browser is
driven through its DevTools protocol (JSON over a WebSocket, RFC 6455), for which the standard library suffices.
"""
import base64
import contextlib
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

SIZE = 1280, 720


class Page:
    """The page's end of the protocol: one call, one answer."""

    def __init__(self, url):
        host, port, path = re.fullmatch(r"ws://([^:/]+):(\d+)(/.*)", url).groups()
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        self.input = self.socket.makefile("rb")
        while self.input.readline().strip():
            pass
        self.calls = 0

    def receive(self):
        """A message: frames up to the one that ends it."""
        message, is_last = b"", False
        while not is_last:
            flags, size = self.input.read(2)
            is_last, size = flags & 0x80, size & 0x7f
            if size > 125:
                size, = struct.unpack(">H" if size == 126 else ">Q", self.input.read(2 if size == 126 else 8))
            message += self.input.read(size)
        return json.loads(message)

    def call(self, method, **parameters):
        self.calls += 1
        text = json.dumps({"id": self.calls, "method": method, "params": parameters}).encode()
        # Clients mask what they send; with zeros, which leave it as it is.
        self.socket.sendall(b"\x81" + struct.pack(">BH", 0x80 | 126, len(text)) + bytes(4) + text)
        while (answer := self.receive()).get("id") != self.calls:
            pass
        if "error" in answer:
            raise RuntimeError(answer["error"]["message"])
        return answer["result"]

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=f"JSON.stringify({expression})", returnByValue=True)["result"]
        return json.loads(result.get("value", "null"))

    def point(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)


@contextlib.contextmanager
def browser(path):
    with tempfile.TemporaryDirectory() as home:
        process = subprocess.Popen(["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={home}",
                                    "--remote-debugging-port=0", f"--window-size={SIZE[0]},{SIZE[1]}", "file://" + os.path.abspath(path)],
                                   stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        try:
            ports = (re.search(r"DevTools listening on ws://[^:]+:(\d+)/", line) for line in process.stderr)
            port = next(found for found in ports if found)[1]
            pages = []
            while not pages:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as listed:
                    pages = [page for page in json.load(listed) if page["type"] == "page"]
            page = Page(pages[0]["webSocketDebuggerUrl"])
            while page.evaluate("document.readyState") != "complete" or page.evaluate("typeof tip") != "object":
                time.sleep(.05)
            yield page
        finally:
            process.terminate()
            process.wait()


def bar_problem(page, index):
    """What is wrong with what is shown of a bar."""
    bar = f"document.querySelectorAll('.bar')[{index}]"
    page.evaluate(f"{bar}.scrollIntoView({{block: 'end', inline: 'center'}})")
    box, data = page.evaluate(f"{bar}.getBoundingClientRect()"), page.evaluate(f"({{...{bar}.dataset}})")
    page.point(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tip, text = page.evaluate("tip.getBoundingClientRect()"), page.evaluate("tip.textContent")
    want = f"rank {data['rank']}: {data['action']}, from {data['start']} to {data['end']} ("
    if page.evaluate("getComputedStyle(tip).display") != "block" or not text.startswith(want):
        return f"bar {index}: shows {text!r}, not {want!r}"
    width, height = page.evaluate("innerWidth"), page.evaluate("innerHeight")
    if not (0 <= tip["left"] and tip["right"] <= width and 0 <= tip["top"] and tip["bottom"] <= height):
        return f"bar {index}: the tip lies at {tip}, in a window of {width} by {height}"
    page.point(2, 2)
    return "" if page.evaluate("getComputedStyle(tip).display") == "none" else f"bar {index}: the tip stays"


def main():
    with browser(sys.argv[1]) as page:
        count = page.evaluate("document.querySelectorAll('.bar').length")
        bars = sorted({index * (count - 1) // 49 for index in range(50)}) if count else []
        problems = [problem for problem in (bar_problem(page, index) for index in bars) if problem]
        # Labels must lie within their bars, or neighbors cut them off.
        wide = page.evaluate("[...document.querySelectorAll('.bar + text')].filter(text => text.getBBox().width > "
                             "text.previousElementSibling.getBBox().width).map(text => text.textContent)")
        problems += [f"the label {label} is wider than its bar" for label in wide[:5]]
        if len(sys.argv) > 2:
            size = page.call("Page.getLayoutMetrics")["cssContentSize"]
            picture = page.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                                clip={"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1})["data"]
            with open(sys.argv[2], "wb") as file:
                file.write(base64.b64decode(picture))
    for problem in problems:
        print(problem)
    print(f"{len(bars)} of {count} bars pointed at, {len(problems)} problems")
    return 1 if problems or not bars else 0


if __name__ == "__main__":
    sys.exit(main())
