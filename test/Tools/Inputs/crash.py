"""Sends SIGSEGV to a tool that waits for its standard input, and prints what it says. Usage: crash.py TOOL [ARGUMENT...]"""
import signal
import subprocess
import sys
import time

process = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
time.sleep(0.5)
process.send_signal(signal.SIGSEGV)
print(process.communicate()[1])
