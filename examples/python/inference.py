"""An encoder on two ranks, each of which has half of the attention heads, against the same encoder on one."""
import os

import numpy as np

import cleave

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
model, plan = os.path.join(root, "test/Models/bert_ts17.onnx"), os.path.join(root, "examples/bert.yaml")
ids = np.random.default_rng(0).integers(0, 100, (4, 16))
inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}

with cleave.compile(model, mesh="data=1,model=2", plan=plan) as two, cleave.compile(model, dims={"batch": 4, "seq": 16}) as one:
    print(two.report)
    apart = np.abs(two.run(inputs)["pooler_output"] - one.run(inputs)["pooler_output"]).max()
    print(f"{two.ranks} ranks and {one.ranks} are apart by {apart:.1e}")
assert apart < 1e-5
