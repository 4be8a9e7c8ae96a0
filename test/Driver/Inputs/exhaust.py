"""Runs tools with ever less memory, and with no thread to spare: each ends well, or with one line that says what is missing.

    memory cleave: ended with a message     at one limit at least, and never by a signal
"""
import os
import re
import resource
import subprocess
import sys

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../examples/megatron.mlir")
TOOLS = {"cleave": ["cleave", "run", MODEL, "--mesh", "model=4", "--executor=program", "--quiet"],
         "cleave-opt": ["cleave-opt", MODEL, "--nn-canonicalize", "-o", "/dev/null"],
         "cleave-run": ["cleave-run", "m.cleave", "--outputs", "/dev/null"]}
MESSAGE = r"error: .*(memory|thread|Resource temporarily unavailable)"


def call(words, prepare):
    done = subprocess.run(words, env={**os.environ, "TMPDIR": "/tmp"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", preexec_fn=prepare,
                          timeout=120)
    return done.returncode, done.stdout


def limit(kind, value):
    return lambda: resource.setrlimit(kind, (value, value))


def without_threads():
    """One process more is one too many, for all but the superuser."""
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)


def main():
    for name, words in TOOLS.items():
        told = 0
        for megabytes in (4000, 1000, 700, 500, 400, 300, 250, 200, 150, 120, 100, 80, 60, 50, 40, 30, 20):
            code, text = call(words, limit(resource.RLIMIT_AS, megabytes << 20))
            # Below that the system's loader gives up, or the allocator's own tables have no room.
            if "internal tcmalloc data" in text or "error while loading shared libraries" in text or "cannot allocate memory in static TLS" in text or (code == 127 and not text):
                break
            if code == 0:
                continue
            if code not in (1, 4) or not re.search(MESSAGE, text):
                print(f"memory {name}: exit code {code} with {megabytes} MB\n{text}")
                break
            told += 1
        print(f"memory {name}: {'ended with a message' if told else 'never ran out'}")
    for name, words in TOOLS.items():
        code, text = call(words, without_threads)
        told = code in (1, 4) and re.search(MESSAGE, text)
        print(f"threads {name}: {'done' if code == 0 else 'ended with a message' if told else f'exit code {code} {text}'}")


sys.exit(main())
