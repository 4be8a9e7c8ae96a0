"""Fine-tunes an encoder on two ranks, step by step, and then all at once; the losses are the same."""
import os

import numpy as np

import cleave

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
model = os.path.join(root, "test/Models/bert_ts17.onnx")
random = np.random.default_rng(0)
data = {"input_ids": random.integers(0, 100, (32, 16)), "labels": random.standard_normal((32, 64)).astype(np.float32)}
data |= {"attention_mask": np.ones_like(data["input_ids"]), "token_type_ids": np.zeros_like(data["input_ids"])}
rules = [cleave.Rule(tensor=name, dims=["data", "_"]) for name in data]
plan = cleave.Plan(mesh={"data": 2}, dims={"batch": 8, "seq": 16}, shard=rules,
                   more={"train": {"loss": {"kind": "mse", "of": "pooler_output"}, "optimizer": {"kind": "adamw"}, "rate": 1e-3}})

with cleave.Trainer(model, plan=plan) as trainer:
    losses = [trainer.step({name: array[8 * step:8 * step + 8] for name, array in data.items()}) for step in range(4)]
result = cleave.train(model, data, plan=plan, epochs=1, shuffled=False)
print(losses, result.losses)
np.testing.assert_allclose(losses, result.losses, rtol=1e-5)
