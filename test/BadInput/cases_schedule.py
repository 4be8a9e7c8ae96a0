"""Bad schedules: tables, reports, costs and command lines."""
from case import Case

GOOD = b"0F0,0B0\n1F0,1B0\n"


def table(name, text, *words):
    return Case(f"schedule-{name}", ["schedule", "--schedule", "t.csv", "--report", "r.json"], {"t.csv": text},
                ["t.csv", *words])


def report(name, text, *words):
    return Case(f"schedule-{name}", ["schedule", "--schedule", "t.json", "--table", "out.csv"], {"t.json": text},
                ["t.json", *words])


def line(name, *arguments, words=(), exit_code=2):
    return Case(f"schedule-{name}", ["schedule", *arguments, "--table", "out.csv"], {"t.csv": GOOD}, list(words), exit_code)


def big_table(path):
    """A row per rank and nothing that fits together, 8 MB."""
    with open(path, "wb") as file:
        for rank in range(1000):
            file.write(b",".join(b"%dF%d" % (rank, i * 7) for i in range(1000)) + b"\n")


def big_json(path):
    with open(path, "wb") as file:
        file.write(b"[" + b"1," * (11 << 20) + b"1]")


def cases():
    yield table("empty", b"", "empty")
    yield table("binary", bytes(range(256)), "row 1, column 1")
    yield table("truncated", GOOD[:-4], "1B0", "missing")
    yield table("unknown-kind", b"0F0,0G0\n", "row 1, column 2", "0G0")
    yield table("not-the-whole-cell", b"0F0,0B0x\n", "row 1, column 2")
    yield table("huge-microbatch", b"0F0,0F1000000000\n", "row 1, column 2", "1000000000")
    yield table("huge-stage", b"0F0,0B0\n2000000000F0\n", "row 2, column 1", "2000000000")
    yield table("number-without-end", b"0F" + b"9" * 100000 + b"\n", "row 1, column 1")
    yield table("holes", big_table, "need")
    yield table("deadlock", b"0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n", "rank 0 at action 2", "rank 1 at action 2")
    yield table("twice", b"0F0,0F0,0B0\n1F0,1B0\n", "rank 0 at action 2")
    yield table("wrong-rank", b"0F0,0B0,1B0\n1F0\n", "rank 0 at action 3", "belongs on rank 1")
    yield table("idle-with-messages", b"0F0,,0SEND_F0\n1RECV_F0,1F0\n", "row 1, column 2")
    yield table("unpaired", b"0F0,0SEND_F0\n1F0\n", "1F0")
    yield report("not-json", b"{", "t.json")
    yield report("deep", b"[" * 1000000, "deeper")
    yield report("many-values", big_json, "values, more than")
    yield report("many-objects", b"[" + b'{"a":1},' * 1000000 + b"{}]", "1000001 objects")
    yield report("most-objects", b"[" + b'{"a":1},' * 99999 + b"{}]", "expected an object")
    yield report("most-values", b"[" + b"1," * 2000000 + b"1]", "expected an object")
    yield report("no-programs", b"{}", "programs")
    yield report("negative-rank", b'{"programs": [[]], "replicas": [{"placement": [-1], "microbatches": [0]}]}', "placement[0]")
    yield report("huge-microbatches", b'{"programs": [[]], "replicas": [{"placement": [0], "microbatches": [1000000000]}]}',
                 "microbatch 0")
    yield Case("schedule-costs-of-other-stages", ["schedule", "--ranks", "2", "--microbatches", "2", "--costs", "c.json"],
               {"c.json": b'{"costs": {"F": [1, 2, 3]}}'}, ["c.json", "costs.F", "2"])
    yield Case("schedule-costs-empty", ["schedule", "--ranks", "2", "--microbatches", "2", "--costs", "c.json"],
               {"c.json": b"{}"}, ["c.json", "costs"])
    yield line("no-ranks", "--microbatches", "4", words=["--ranks"])
    yield line("unknown", "--schedule", "1f2b", "--ranks", "2", "--microbatches", "4", words=["1f2b", "gpipe"])
    yield line("odd-dualpipe", "--schedule", "dualpipe", "--ranks", "3", "--microbatches", "8", words=["even"])
    yield line("few-for-dualpipe-v", "--schedule", "dualpipe-v", "--ranks", "4", "--microbatches", "4", words=["8"])
    yield line("odd-hanayo", "--schedule", "hanayo", "--ranks", "2", "--microbatches", "4", "--chunks", "3", words=["even"])
    yield line("chunks", "--schedule", "gpipe", "--ranks", "2", "--microbatches", "4", "--chunks", "2", words=["1 chunks"])
    yield line("too-large", "--ranks", "1000000000", "--microbatches", "1000000000", words=["more than"])
    yield line("negative-cost", "--ranks", "2", "--microbatches", "2", "--cost", "F=-1", words=["negative"])
    yield line("bad-cost", "--ranks", "2", "--microbatches", "2", "--cost", "F=nan", words=["F=nan"])
    yield line("ranks-of-a-table", "--schedule", "t.csv", "--ranks", "3", words=["t.csv", "2"])
    yield line("memory", "--ranks", "4", "--microbatches", "8", "--memory-limit", "1", words=["all ranks fit in 4"], exit_code=1)
