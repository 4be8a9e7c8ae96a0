"""Which plan is best for four devices of a machine, and is what it makes right?"""
import os

import cleave

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
model, sizes = os.path.join(root, "test/Models/gpt2_ts17.onnx"), {"batch": 4, "seq": 16}

found = cleave.plan(model, 4, cluster="8xH100-nvlink", dims=sizes)
for cell in found.cells:
    print(cell.mesh, cell.why, f"{cell.seconds * 1e6:.1f} us" if cell.seconds else "")
print(found.plan)
checked = cleave.check(model, plan=found.plan)
print("right" if checked else "wrong", [(output.name, output.largest) for output in checked.outputs])
assert checked
