"""All golden cases by name, in the order of docs/generated/golden.md."""
from table import attention, conv, dot, embed, fsdp, index, mixed, mlp, move, neighbors, reduce, uneven

CASES = {case.name: case
         for module in (mlp, fsdp, attention, embed, reduce, conv, move, uneven, dot, index, mixed, neighbors)
         for case in module.CASES}
