"""What a process needs to come to a rank without Cleave's own code: frames, proofs by Python's BLAKE2, and torch's TCPStore.

Written from the protocols (lib/Runtime/Handshake.h, WatchFrame.h, Tcp.cpp; torch's TCPStore.cpp), so that suites do not believe what
one side says of the other.
"""
import hashlib
import os
import socket
import socketserver
import struct
import subprocess
import threading

HELLO, BEAT, FAULT, RECORD, RELEASE, BYE, BANNER, WELCOME, PROOF, CHOSEN = range(10)
MAGIC = 0x43574631
WATCH, MESSAGES = 0, 1


def frame(kind, about, text):
    return struct.pack("=IIiI", MAGIC, kind, about, len(text)) + text


def receive(connection, count):
    received = b""
    while len(received) < count:
        more = connection.recv(count - len(received))
        if not more:
            raise EOFError(f"the connection ended after {received!r}")
        received += more
    return received


def read_frame(connection):
    magic, kind, about, length = struct.unpack("=IIiI", receive(connection, 16))
    assert magic == MAGIC, hex(magic)
    return kind, about, receive(connection, length)


def get_version(build):
    said = subprocess.run([f"{build}/bin/cleave-run", "--version"], capture_output=True, text=True, check=True).stdout
    return said.split()[1]


def derive(digits, name):
    """The key of ranks that were given CLEAVE_SECRET."""
    return hashlib.blake2b(name.encode(), key=bytes.fromhex(digits), digest_size=16).digest()


def prove(key, version, side, purpose, host, rank, size, program, nonces, card):
    text = f"cleave {version} {side}".encode() + struct.pack("=IiiiQ", purpose, host, rank, size, program) + b"".join(nonces) + card
    return hashlib.blake2b(text, key=key, digest_size=32).digest()


def join(address, key, version, purpose, host, rank, size, card=b"", program=1):
    """A connection to the port of rank `host`, as rank `rank` of `size`; None where it is not let in."""
    connection = socket.create_connection(address, 5)
    kind, _, banner = read_frame(connection)
    assert kind == BANNER and len(banner) == 16, (kind, banner)
    nonces = [banner, os.urandom(16)]
    proof = prove(key, version, "guest", purpose, host, rank, size, program, nonces, card)
    connection.send(frame(HELLO, rank, nonces[1] + proof + struct.pack("=Qii", program, size, rank) + card))
    try:
        kind, _, theirs = read_frame(connection)
    except (EOFError, OSError):
        return None
    assert kind == PROOF and theirs == prove(key, version, "host", purpose, host, rank, size, program, nonces, card), (kind, theirs)
    connection.send(frame(CHOSEN, rank, b""))
    return connection


class Store(socketserver.ThreadingTCPServer):
    """torch's TCPStore, as far as set, get and check need it."""
    allow_reuse_address = daemon_threads = True

    def __init__(self, port):
        self.values = {}

        class Handler(socketserver.BaseRequestHandler):
            def text(self):
                return receive(self.request, struct.unpack("=Q", receive(self.request, 8))[0])

            def handle(self):
                try:
                    assert receive(self.request, 5) == struct.pack("=BI", 0, 0x3C85F7CE)
                    while True:
                        request = receive(self.request, 1)[0]
                        if request == 1:
                            key = self.text()
                            self.server.values[key] = self.text()
                        elif request == 3:
                            value = self.server.values[self.text()]
                            self.request.sendall(struct.pack("=Q", len(value)) + value)
                        elif request == 5:
                            keys = [self.text() for _ in range(struct.unpack("=Q", receive(self.request, 8))[0])]
                            self.request.sendall(bytes([0 if all(key in self.server.values for key in keys) else 1]))
                        else:
                            return
                except (EOFError, OSError):
                    pass
        super().__init__(("127.0.0.1", port), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


def find_listening(processes):
    """(address, port) of all TCP ports at which these processes listen."""
    inodes = set()
    for process in processes:
        try:
            for name in os.listdir(f"/proc/{process}/fd"):
                inodes.add(os.readlink(f"/proc/{process}/fd/{name}"))
        except OSError:
            pass
    found = set()
    for name in ("tcp", "tcp6"):
        with open(f"/proc/net/{name}") as file:
            for line in list(file)[1:]:
                words = line.split()
                if words[3] == "0A" and f"socket:[{words[9]}]" in inodes:
                    address, port = words[1].split(":")
                    shown = socket.inet_ntoa(bytes.fromhex(address)[::-1]) if name == "tcp" else address
                    found.add((shown, int(port, 16)))
    return found
