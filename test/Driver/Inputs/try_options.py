"""Every option of `bench` and `inspect` on a program file: those that `--help` lists for one are taken, all others refused with exit code 2.

Usage: try_options.py MODEL FOLDER
"""
import os
import re
import subprocess
import sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import harness

MODEL, FOLDER = sys.argv[1:]
# Arguments that the options read, so that nothing but what they are about is wrong.
ARGUMENTS = {"--steps-per-call": "2", "--dim": "batch=2", "--shape": "x=2x32", "--seed": "1", "--repeat": "1", "--devices": "2", "--like": "data", "--color": "never", "--mesh": "data=2", "--shard": "x=[_, _]",
             "--gpu": "H100", "--device": "cuda",
             "--state": "a=b", "--optimize": "bytes", "--attention": "ring", "--precision": "f32", "--chunk-collectives": "2", "--cluster": "8xH100-nvlink",
             "--report": "r.json", "--weights": os.path.dirname(os.path.abspath(MODEL))}

# About neither a model nor a program, but the machine that is measured; and what goes with another option alone.
SAID = {"--calibrate": "'--calibrate'", "--device": "'--calibrate'", "--steps-per-call": "'--train' asks for"}


def options_of(command):
    """(every option, with whether it takes an argument; those that a program has)."""
    text = subprocess.run(["cleave", command, "--help"], capture_output=True, text=True, check=True).stdout
    listed = re.search(r"^With a PROGRAM: (.*)\.$", text, re.M)[1].split(", ")
    return {name: bool(argument) for name, argument in re.findall(r"^  (--\S+)( [^ ]\S*)?  ", text, re.M)}, listed


def main():
    program = os.path.join(FOLDER, "p.cleave")
    subprocess.run(["cleave", "compile", MODEL, "--dim", "batch=2", "--quiet", "-o", program], check=True)
    bad, count = [], 0
    for command in ("bench", "inspect"):
        known, listed = options_of(command)
        codes = {}
        for name, takes in known.items():
            if name == "--help":
                continue
            words = [name] + ([ARGUMENTS.get(name, "nothing")] if takes else [])
            done = subprocess.run(["cleave", command, program, *words], capture_output=True, text=True, cwd=FOLDER)
            codes[name] = done.returncode
            due = 0 if name in listed else 2
            said = SAID.get(name, f"'{name}' is about models")
            if done.returncode != due or (due == 2 and said not in done.stderr):
                bad.append(f"{command} {' '.join(words)}: exit {done.returncode}, expected {due}: {done.stderr}")
        count += len(codes)
        print(f"{command}: {sum(code == 0 for code in codes.values())} accepted, {sum(code == 2 for code in codes.values())} refused")
    return harness.sum_up(bad, count)


if __name__ == "__main__":
    sys.exit(main())
