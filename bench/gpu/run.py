#!/usr/bin/env python3
"""Runs the kit on this machine's GPUs: what is right, and how fast it is. Needs Python 3.8, numpy and a driver; torch is measured beside it
where it is installed.

    run [--seconds 470] [--rounds 20] [--without-torch] [--out FOLDER]

Writes FOLDER/kit-result.json and FOLDER/kit-result.txt (FOLDER: here), and prints the latter. Exit codes: 0 all right; 1 something is wrong or
did not run; 2 nothing could be run. What there was no time for is in the table as `not run`.
"""
import argparse
import json
import os
import platform
import secrets
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "lib", "python"))
try:
    import numpy as np
except ImportError:
    sys.exit("run: error: this needs Python's numpy")
import networks

# NCCL refuses ranks that share a device; processes that say that they are on different hosts, and send through sockets, are taken.
ONE_DEVICE = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_NET": "Socket", "NCCL_IB_DISABLE": "1", "NCCL_MNNVL_ENABLE": "0", "NCCL_NVLS_ENABLE": "0",
              "NCCL_ALGO": "Ring", "NCCL_PROTO": "Simple", "NCCL_MAX_CTAS": "2", "NCCL_CUMEM_HOST_ENABLE": "0", "NCCL_RAS_ENABLE": "0",
              "CUDA_MODULE_LOADING": "EAGER"}


class Clock:
    """What is left of the time."""

    def __init__(self, seconds):
        self.ends = time.monotonic() + seconds

    def left(self):
        return self.ends - time.monotonic()


def start(command, environment=None):
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                            env={**os.environ, **(environment or {})})


def finish(process, ends):
    """(exit code, output, errors); a process that takes too long is killed with all it started."""
    try:
        out, errors = process.communicate(timeout=max(1, ends - time.monotonic()))
        return process.returncode, out, errors
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return -1, "", "not done in time"


def call(command, seconds, environment=None):
    return finish(start(command, environment), time.monotonic() + seconds)


def call_ranks(command, ranks, seconds):
    """As many processes as there are ranks, as torchrun starts them, each on a host of its own as NCCL sees it; what the first that failed
    says, else rank 0."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ends, secret = time.monotonic() + seconds, secrets.token_hex(16)
    started = [start([*command, "--ranks", "tcp"],
                     {**ONE_DEVICE, "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(ranks),
                      "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "CLEAVE_SECRET": secret, "NCCL_HOSTID": f"kit{rank}"})
               for rank in range(ranks)]
    done = [finish(process, ends) for process in started]
    return next((each for each in done if each[0] != 0), done[0])


def last_line(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


def compare(got, want, tolerance):
    """(what is wrong or an empty string, the largest difference as a part of the largest element)"""
    if got.shape != want.shape:
        return f"has shape {got.shape}, expected {want.shape}", float("inf")
    if want.dtype.kind in "biu":
        wrong = int((got != want).sum())
        return f"{wrong} of {want.size} elements differ" if wrong else "", float(wrong)
    got, want = got.astype(np.float64), want.astype(np.float64)
    if not np.isfinite(got).all():
        return "has elements that are not finite", float("inf")
    scale = max(float(np.abs(want).max(initial=0)), 1e-6)
    off = float(np.abs(got - want).max(initial=0)) / scale
    return f"off by {off:.1e} of the largest element, allowed {tolerance:.0e}" if off > tolerance else "", off


def load(path):
    """Arrays of an .npz file; bf16, which numpy does not know, comes as two bytes."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    return {name: (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32) if array.dtype.kind == "V" else array
            for name, array in arrays.items()}


class Kit:
    def __init__(self, options):
        self.options, self.clock = options, Clock(options.seconds)
        with open(os.path.join(HERE, "kit.json"), encoding="utf-8") as file:
            self.manifest = json.load(file)
        self.folder = tempfile.mkdtemp(prefix="cleave-kit-")
        self.rows = []

    #===------------------------------------------------------------------===#
    # Programs
    #===------------------------------------------------------------------===#

    def get_weights(self, case):
        """The folder with a case's file of weights, which are drawn when they are first needed."""
        folder = os.path.join(self.folder, case["model"])
        if case["weights"] and not os.path.exists(folder):
            os.makedirs(folder)
            networks.write_weights(os.path.join(folder, f"{case['model']}.bin"), case["weights"])
            if "model_file" in case:
                shutil.copy(os.path.join(HERE, case["model_file"]), folder)
        return folder

    def get_inputs(self, case):
        if "inputs_file" in case:
            return os.path.join(HERE, case["inputs_file"])
        path = os.path.join(self.folder, f"{case['model']}.npz")
        if not os.path.exists(path):
            np.savez(path, **{name: networks.make_input(name, tuple(entry["shape"]), entry["dtype"], entry["below"])
                              for name, entry in case["inputs"].items()})
        return path

    def run_program(self, case, repeat=0, more=(), processes=0, seconds=60, alone=False):
        """(what is wrong or an empty string, outputs, report). Ranks are threads, or so many processes; `alone`: without libraries, by
        kernels of Cleave's own."""
        outputs, report = (os.path.join(self.folder, name) for name in ("outputs.npz", "report.json"))
        for path in (outputs, report):
            if os.path.exists(path):
                os.unlink(path)
        command = [os.path.join(HERE, "bin", "cleave-run"), os.path.join(HERE, case["program"]), "--inputs", self.get_inputs(case),
                   "--weights", self.get_weights(case), "--outputs", outputs, "--report", report, "--repeat", str(repeat), *more]
        seconds = min(seconds, self.clock.left())
        environment = {"CLEAVE_CUDA_WITHOUT": "cublasLt,cudnn"} if alone else {}
        code, _, errors = call_ranks(command, processes, seconds) if processes else call(command, seconds, environment)
        if code != 0 or not os.path.exists(outputs):
            return f"exit code {code}: {last_line(errors)}", {}, {}
        with open(report, encoding="utf-8") as file:
            return "", load(outputs), json.load(file)

    def get_expected(self, case):
        """By name, and which rows of the result they are; None for all."""
        if "expected_file" in case:
            return load(os.path.join(HERE, case["expected_file"])), case.get("rows")
        network, sizes = next(group[case["model"]] for group in networks.get_sets(self.manifest["small"]) if case["model"] in group)
        rows = None
        if network in networks.BY_ROW:
            count = next(iter(case["inputs"].values()))["shape"][0]
            rows = sorted({int(row) for row in np.linspace(0, count - 1, 2 if network is networks.attend else 64)})
        return {"result": network(networks.NumpyOps(rows), *sizes)}, rows

    def check(self, case, repeat=0, **how):
        """The row of the table that says whether a case is right."""
        row = {"name": case["name"], "kind": case["kind"]}
        if self.clock.left() < 5:
            return {**row, "state": "not run", "why": "no time left"}
        why, outputs, report = self.run_program(case, repeat, **how)
        expected, rows = ({}, None) if why else self.get_expected(case)
        row["off"] = 0.0
        for name, want in expected.items():
            got = outputs.get(name)
            if got is None:
                why = why or f"there is no output {name}"
                continue
            got = got.reshape(-1, got.shape[-1])[rows] if rows and "rows" in case else got if rows is None else got[rows]
            problem, off = compare(got, want, case["tolerance"])
            row["off"], why = max(row["off"], off), why or (f"{name} {problem}" if problem else "")
        if not why and not expected:
            why = "nothing is expected of it"
        row["compared"] = int(sum(want.size for want in expected.values()))
        row["report"] = report
        return {**row, "state": "wrong" if why else "right", "why": why}

    #===------------------------------------------------------------------===#
    # Times
    #===------------------------------------------------------------------===#

    def measure_way(self, case, **how):
        """Microseconds of a call on the device: the median of graphs."""
        row = self.check(case, self.options.rounds, seconds=120, **how)
        report = row.get("report", {})
        times = report.get("device_runs", report.get("runs", []))
        if row["state"] == "right" and times:
            row["microseconds"] = statistics.median(times) * 1e6
            row["calls"] = len(times)
            row["host_microseconds"] = statistics.median(report["runs"]) * 1e6
        return row

    def measure(self, case):
        """The rows of a case: with what libraries there are, and without; of attention, which is not done alike, each is one."""
        row = self.measure_way(case)
        if row["state"] != "right" or not any(use["calls"] for use in row["report"].get("libraries", [])):
            return [row]
        alone = self.measure_way(case, alone=True)
        if case["name"].startswith("attention"):
            return [row, {**alone, "name": f"{case['name']} alone"}]
        row["alone_microseconds"] = alone.get("microseconds")
        if alone["state"] != "right":
            row.update(state=alone["state"], why=f"by kernels alone: {alone['why']}")
        return [row]

    def profile(self, case):
        """Of a model: microseconds of each kind of kernel, and the bytes that its tensors have."""
        trace = os.path.join(self.folder, "trace.json")
        why, _, _ = self.run_program(case, 2, ["--trace", trace], seconds=120)
        if why:
            return []
        with open(trace, encoding="utf-8") as file:
            # Of a launch the bar of its kernel, which is within that of its kind.
            events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X" and event["cat"] != "launch"]
        sums = {}
        for event in events:
            entry = sums.setdefault(event["name"], [0, 0.0, 0])
            entry[0], entry[1], entry[2] = entry[0] + 1, entry[1] + event["dur"], entry[2] + case["bytes"][event["args"]["command"]]
        return [{"name": name, "commands": count, "microseconds": round(time_, 3), "bytes": bytes_}
                for name, (count, time_, bytes_) in sorted(sums.items(), key=lambda item: -item[1][1])]

    def measure_torch(self, case, ways):
        """{way: milliseconds}, or why there are none."""
        seconds = self.clock.left() - 5
        if seconds < 10:
            return {"why": "no time left"}
        code, out, errors = call([sys.executable, os.path.join(HERE, "lib", "python", "peers.py"), HERE, case["model"], case["precision"],
                                  str(self.options.rounds), "5", *ways], min(seconds, 150))
        lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        times = {line["way"]: line["milliseconds"] * 1e3 for line in lines}
        if lines and lines[0]["device"] == "cpu":
            return {"why": "torch sees no device"}
        return {**times, **({"why": last_line(errors)} if code != 0 else {})}

    #===------------------------------------------------------------------===#
    # All
    #===------------------------------------------------------------------===#

    def note(self, row):
        row["libraries"] = row.pop("report", {}).get("libraries", [])
        self.rows.append(row)
        print(f"  {row['kind']:8} {row['name']:40} {row['state']:8} {row.get('why', '')}", flush=True)

    def run_checks(self):
        """With libraries, where there are some, and by kernels alone."""
        for case in self.manifest["cases"]:
            if case["kind"] == "check":
                self.note(self.check(case))
                self.note({**self.check(case, alone=True), "kind": "alone"})

    def run_groups(self, devices):
        """Two ranks: threads on two devices, or, with one, processes that NCCL takes for those of two hosts."""
        for case in self.manifest["cases"]:
            if case["kind"] != "nccl":
                continue
            self.note(self.check(case, processes=0 if devices >= 2 else 2))

    def run_times(self, kind):
        for case in self.manifest["cases"]:
            if case["kind"] == kind:
                for row in self.measure(case):
                    self.note(row)
                if kind == "model" and self.rows[-1]["state"] == "right" and self.clock.left() > 30:
                    self.rows[-1]["profile"] = self.profile(case)

    def run_torch(self):
        """Models first, compiled and not; then kernels and products as they are."""
        order = {"model": 0, "product": 1, "kernel": 2}
        cases = sorted((case for case in self.manifest["cases"] if case["kind"] in order), key=lambda case: order[case["kind"]])
        for case in cases:
            row = next((row for row in self.rows if row["name"] == case["name"] and row["kind"] == case["kind"]), {})
            if "microseconds" in row:
                row["torch"] = self.measure_torch(case, ["eager", "compile"] if case["kind"] != "kernel" else ["compile"])

    def run(self):
        device = describe_device(os.environ.get("CLEAVE_CUDA_LIBRARY", ""))
        print(f"device: {device['name']}, {device['count']} visible")
        self.run_checks()
        for kind in ("kernel", "product", "model"):
            self.run_times(kind)
        self.run_groups(device["count"])
        has_torch = not self.options.without_torch and call([sys.executable, "-c", "import torch"], 60)[0] == 0
        if has_torch:
            self.run_torch()
        result = {"version": 1, "kit": self.manifest["version"], "small": self.manifest["small"], "date": time.strftime("%Y-%m-%d %H:%M:%S %z"),
                  "host": platform.node(), "device": device, "torch": has_torch, "rows": self.rows}
        text = format_table(result, self.manifest)
        os.makedirs(self.options.out, exist_ok=True)
        with open(os.path.join(self.options.out, "kit-result.json"), "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
        with open(os.path.join(self.options.out, "kit-result.txt"), "w", encoding="utf-8") as file:
            file.write(text)
        print("\n" + text)
        return 0 if all(row["state"] == "right" for row in self.rows) else 1


def describe_device(cuda):
    """By NVIDIA's tool; a device that is emulated says so."""
    if "emulated" in os.path.basename(cuda):
        return {"name": "emulated (no GPU: times mean nothing)", "count": int(os.environ.get("CLEAVE_EMULATION_DEVICES", "8"))}
    if not shutil.which("nvidia-smi"):
        return {"name": "unknown: there is no nvidia-smi", "count": 1}
    code, out, _ = call(["nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm,clocks.max.mem,memory.total", "--format=csv,noheader"], 20)
    lines = out.strip().splitlines() if code == 0 else []
    return {"name": lines[0] if lines else "unknown: nvidia-smi tells nothing", "count": max(1, len(lines))}


#===----------------------------------------------------------------------===#
# The table
#===----------------------------------------------------------------------===#

def format_time(microseconds):
    return f"{microseconds:10.1f}" if microseconds is not None else " " * 10


def format_peer(row, way):
    torch = row.get("torch", {})
    return format_time(torch.get(way))


def format_table(result, manifest):
    cases = {(case["kind"], case["name"]): case for case in manifest["cases"]}
    rows = {kind: [row for row in result["rows"] if row["kind"] == kind] for kind in ("kernel", "product", "model")}
    lines = [f"Cleave {manifest['version']} on {result['device']['name']}, {result['date']}", ""]
    states = [row["state"] for row in result["rows"]]
    lines.append(f"{states.count('right')} right, {states.count('wrong')} wrong, {states.count('not run')} not run, "
                 f"{sum(row.get('compared', 0) for row in result['rows'])} elements compared")
    lines += [f"  {row['state']}: {row['kind']} {row['name']}: {row['why']}" for row in result["rows"] if row["state"] != "right"]
    times = {row["name"]: row["microseconds"] for row in rows["kernel"] if "microseconds" in row}
    peak = sum(cases["kernel", "negate"]["bytes"]) / times["negate"] if "negate" in times else None
    if rows["kernel"]:
        lines += ["", f"{'kernel':28}{'us':>10}{'GB/s':>10}{'of negate':>10}{'torch us':>10}"]
        for row in rows["kernel"]:
            if row["name"] in times:
                rate = sum(cases["kernel", row["name"]]["bytes"]) / row["microseconds"]
                share = f"{rate / peak:9.0%} " if peak else " " * 10
                lines.append(f"{row['name']:28}{format_time(row['microseconds'])}{rate / 1e3:10.1f}{share}{format_peer(row, 'compile')}")
    if rows["product"]:
        lines += ["", f"{'product':28}{'us':>10}{'Tflop/s':>10}{'alone us':>10}{'torch us':>10}{'compiled':>10}"]
        for row in rows["product"]:
            if "microseconds" in row:
                speed = cases["product", row["name"].split()[0]]["flops"] / row["microseconds"] / 1e6
                lines.append(f"{row['name']:28}{format_time(row['microseconds'])}{speed:10.2f}{format_time(row.get('alone_microseconds'))}{format_peer(row, 'eager')}{format_peer(row, 'compile')}")
    if rows["model"]:
        lines += ["", f"{'model':28}{'us':>10}{'host us':>10}{'alone us':>10}{'torch us':>10}{'compiled':>10}{'ratio':>8}"]
        for row in rows["model"]:
            if "microseconds" in row:
                compiled = row.get("torch", {}).get("compile")
                ratio = f"{compiled / row['microseconds']:8.2f}" if compiled else ""
                lines.append(f"{row['name']:28}{format_time(row['microseconds'])}{format_time(row['host_microseconds'])}"
                             f"{format_time(row.get('alone_microseconds'))}{format_peer(row, 'eager')}{format_peer(row, 'compile')}{ratio}")
        for row in rows["model"]:
            for entry in row.get("profile", [])[:6]:
                rate = entry["bytes"] / entry["microseconds"] / 1e3 if entry["microseconds"] else 0
                lines.append(f"  {row['name']:18} {entry['name']:36}{entry['commands']:5} x {entry['microseconds']:10.1f} us {rate:8.1f} GB/s")
    return "\n".join(lines) + "\n"


def main():
    # What cleave-run opens by name; libraries of NVIDIA's it looks for as always.
    os.environ["CLEAVE_CUDA_RUNTIME"] = os.path.join(HERE, "lib", "libcleave_cuda.so")
    os.environ["CLEAVE_TCP_LIBRARY"] = os.path.join(HERE, "lib", "libcleave_tcp.so")
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=470, help="how long all of it may take (470)")
    parser.add_argument("--rounds", type=int, default=20, help="calls that are timed (20)")
    parser.add_argument("--without-torch", action="store_true", help="measures nothing but Cleave")
    parser.add_argument("--out", default=os.getcwd(), help="where the results go (here)")
    kit = Kit(parser.parse_args())
    try:
        sys.exit(kit.run())
    finally:
        shutil.rmtree(kit.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
