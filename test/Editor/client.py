"""An editor, as the language server protocol has it: messages to `cleave lsp` over a pipe, and what it answers."""
import json
import queue
import subprocess
import threading

from harness import ROOT

GPT2 = f"{ROOT}/test/Models/gpt2_ts17.onnx"
TOP = f"# model: {GPT2}\n"
MESH = "mesh: {data: 2, model: 2}\n"
SIZES = "dims: {batch: 4, seq: 16}\n"
# Of a server that hangs; what waits does so for a message.
LIMIT_S = 300


class Gone(Exception):
    """The server has ended."""


class Client:
    """A server and what it says. Requests return the `result`, or raise `Refused`."""

    class Refused(Exception):
        def __init__(self, error):
            super().__init__(error["message"])
            self.code = error["code"]

    def __init__(self, build, *words, folder=None, initialize=True, options=None):
        self.process = subprocess.Popen([f"{build}/bin/cleave", "lsp", *words], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.answers = queue.Queue()
        self.diagnostics = {}
        self.number = self.plans = 0
        self.capabilities = None
        threading.Thread(target=self._read, daemon=True).start()
        self.errors = []
        threading.Thread(target=lambda: self.errors.append(self.process.stderr.read()), daemon=True).start()
        if initialize:
            self.capabilities = self.request("initialize", processId=None, rootUri=None, capabilities={}, initializationOptions=options or {})["capabilities"]
            self.notify("initialized")

    def _read(self):
        while True:
            size = None
            while (line := self.process.stdout.readline()) not in (b"\r\n", b""):
                if line.lower().startswith(b"content-length:"):
                    size = int(line.split(b":")[1])
            if size is None:
                self.answers.put(None)
                return
            self.answers.put(json.loads(self.process.stdout.read(size)))

    def send_bytes(self, data):
        try:
            self.process.stdin.write(data)
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Gone() from None

    def send(self, message):
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.send_bytes(b"Content-Length: %d\r\n\r\n" % len(data) + data)

    def notify(self, method, **params):
        self.send({"method": method, "params": params})

    def start(self, method, **params):
        """Sends a request; its number."""
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        return self.number

    def wait(self, done):
        """Takes messages up to the first that `done` says something of, which is returned."""
        while True:
            message = self.answers.get(timeout=LIMIT_S)
            if message is None:
                raise Gone()
            if message.get("method") == "textDocument/publishDiagnostics":
                self.diagnostics[message["params"]["uri"]] = message["params"]
            if (answer := done(message)) is not None:
                return answer

    def finish(self, number):
        message = self.wait(lambda message: message if message.get("id") == number and "method" not in message else None)
        if "error" in message:
            raise self.Refused(message["error"])
        return message["result"]

    def request(self, method, **params):
        return self.finish(self.start(method, **params))

    def close(self):
        """Shuts it down; its exit code."""
        self.request("shutdown")
        self.notify("exit")
        self.process.stdin.close()
        return self.process.wait(timeout=LIMIT_S)


class Plan:
    """A plan that is open in an editor. A `|` in texts of `at` is the cursor."""

    def __init__(self, client, text, path=None):
        client.plans += 1
        path = path or f"/nowhere/plan-{client.plans}.yaml"
        self.client, self.uri, self.version = client, path if ":" in path else f"file://{path}", 1
        self.text = text
        client.notify("textDocument/didOpen", textDocument={"uri": self.uri, "languageId": "yaml", "version": 1, "text": text})

    def place(self, offset):
        """The position of an offset in characters: lines, and units of UTF-16."""
        before = self.text[:offset]
        return {"line": before.count("\n"), "character": len(before.rpartition("\n")[2].encode("utf-16-le")) // 2}

    def find(self, words, number=0):
        """The position of the `|` in these words of the text."""
        wanted = words.replace("|", "", 1)
        start = -1
        for _ in range(number + 1):
            start = self.text.index(wanted, start + 1)
        return self.place(start + words.index("|"))

    def change(self, text, span=None):
        """All of the text, or what is between two offsets, becomes another one."""
        self.version += 1
        event = {"text": text}
        if span:
            event["range"] = {"start": self.place(span[0]), "end": self.place(span[1])}
            text = self.text[:span[0]] + text + self.text[span[1]:]
        self.client.notify("textDocument/didChange", textDocument={"uri": self.uri, "version": self.version}, contentChanges=[event])
        self.text = text

    def look(self):
        """What is said of the text as it is now: (severity, line, character, message), lines and characters from 0."""
        known = self.client.diagnostics.get(self.uri)
        params = known if known and known["version"] == self.version else self.client.wait(
            lambda message: message["params"] if message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == self.uri
            and message["params"]["version"] == self.version else None)
        return [(one["severity"], one["range"]["start"]["line"], one["range"]["start"]["character"], one["message"]) for one in params["diagnostics"]]

    def ask(self, what, position, **more):
        return self.client.request(f"textDocument/{what}", textDocument={"uri": self.uri}, position=position, **more)

    def complete(self, words, number=0):
        return [item["label"] for item in self.ask("completion", self.find(words, number))["items"]]

    def hover(self, words, number=0):
        answer = self.ask("hover", self.find(words, number))
        return answer and answer["contents"]["value"]

    def hints(self):
        end = {"line": self.text.count("\n") + 1, "character": 0}
        answer = self.client.request("textDocument/inlayHint", textDocument={"uri": self.uri}, range={"start": {"line": 0, "character": 0}, "end": end})
        return [(hint["position"]["line"], hint["label"]) for hint in answer]

    def define(self, words, number=0):
        one = self.ask("definition", self.find(words, number))
        return [(one["range"]["start"]["line"], one["range"]["start"]["character"])] if one else []


def expect(got, want, what):
    """What is wrong where `got` is not `want`."""
    return "" if got == want else f"{what}: got {got!r}, expected {want!r}"


def joined(problems):
    return "\n".join(problem for problem in problems if problem)
