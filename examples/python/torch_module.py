"""A module of PyTorch on two ranks, with rules that name its modules. Needs torch and onnxscript."""
import torch

import cleave


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(64, 256), torch.nn.Linear(256, 64)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


net, x = torch.nn.Sequential(Block(), Block()), torch.randn(8, 64)
plan = cleave.Plan(mesh={"model": 2}, shard=[cleave.Rule(module="*.up", dims=["_", "model"]), cleave.Rule(module="*.down", dims=["model", "_"])])
with cleave.compile(cleave.from_torch(net, (x,)), plan=plan) as program:
    print(program.report)
    apart = (torch.from_dlpack(cleave.to_dlpack(program(x))) - net(x)).abs().max().item()
print(f"apart from torch by {apart:.1e}")
assert apart < 1e-5
