"""Holds the man page (its source) to the options that docs/command-line.md lists.

Usage: check_manual.py PAGE.1 command-line.md
"""
import re
import sys

page, interface = (open(name).read() for name in sys.argv[1:])
driver = interface[interface.index("## The driver"):interface.index("## Schedules")]
# --version is no option of a command; what follows is about exit codes and other tools.
wanted = set(re.findall(r"`(--[a-z-]+)", driver[:driver.index("## Exit codes")])) - {"--version"}
written = set(line.replace("\\-", "-").split("\\fR")[0][3:] for line in page.splitlines() if line.startswith("\\fB\\-"))
missing = sorted(wanted - written)
commands = {line.split()[0] for line in page.splitlines() if line.startswith((".", "'"))}
foreign = sorted(commands - {".TH", ".SH", ".SS", ".TP", ".B", ".I"})
print(f"missing {missing}, unknown commands {foreign}" if missing or foreign else f"all of {len(wanted)} options")
