"""Sends SIGSEGV to a `cleave` that waits for its standard input, and prints what is left."""
import glob
import signal
import subprocess
import time

process = subprocess.Popen(["cleave", "run", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
time.sleep(0.5)
process.send_signal(signal.SIGSEGV)
_, errors = process.communicate()
print("code", process.returncode)
print(errors)
for name in glob.glob("cleave-crash-*.sh"):
    print("file", name)
    print(open(name).read())
