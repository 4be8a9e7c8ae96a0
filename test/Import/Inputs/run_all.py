"""Writes a model for each word with a script, and runs a command on it; prints what that says on one line behind the word.

    run_all.py COMMAND SCRIPT MODEL.onnx WORD...
"""
import subprocess
import sys


def main():
    command, script, path, *words = sys.argv[1:]
    for word in words:
        subprocess.run([sys.executable, script, path, word], check=True)
        done = subprocess.run([*command.split(), path], capture_output=True, text=True)
        print(f"{word}: {' '.join(done.stderr.split())}" if done.returncode == 1 else f"{word}: exit {done.returncode}")


if __name__ == "__main__":
    main()
