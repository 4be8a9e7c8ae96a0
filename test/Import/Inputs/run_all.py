"""Writes a model for each word with a script, and runs a command on it; prints what that says, of errors or else of the model, on one line behind the word.

    run_all.py COMMAND SCRIPT MODEL.onnx WORD...
"""
import subprocess
import sys


def main():
    command, script, path, *words = sys.argv[1:]
    for word in words:
        subprocess.run([sys.executable, script, path, word], check=True)
        done = subprocess.run([*command.split(), path], capture_output=True, text=True)
        said = done.stderr if done.returncode == 1 else done.stdout if done.returncode == 0 else f"exit {done.returncode}"
        print(f"{word}: {' '.join(said.split())}")


if __name__ == "__main__":
    main()
