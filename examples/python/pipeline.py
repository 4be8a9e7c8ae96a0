"""A model in two stages, on a rank each: four microbatches go through them, one behind the other."""
import os

import numpy as np

import cleave

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
model, sizes = os.path.join(root, "test/Models/gpt2_ts17.onnx"), {"batch": 8, "seq": 16}
plan = cleave.Plan(mesh={"stage": 2}, dims=sizes, more={"pipeline": {"axis": "stage", "microbatches": 4}})

print(cleave.schedule(model, plan=plan).table)
with cleave.compile(model, plan=plan) as staged, cleave.compile(model, dims=sizes) as one:
    ids = np.random.default_rng(0).integers(0, 100, one.inputs[0].shape)
    mask = np.ones_like(ids)
    np.testing.assert_allclose(staged(ids, mask), one(ids, mask), rtol=1e-4, atol=1e-5)
    print([f"stage {stage['rank']}: {stage['nodes']} nodes" for stage in staged.report.json["pipeline"]["stages"]])
