"""Mistaken command lines of `cleave`, a line each: exit code, what is typed, and words of the answer. The exit code is 2 where another
command line is needed, 1 where another file is."""
import io
import shlex

import numpy as np
from case import Case, mlp, relu


def arrays():
    file = io.BytesIO()
    np.savez(file, hidden=np.zeros((8, 16), np.float32), w=np.zeros((16, 32), np.float32))
    return file.getvalue()


def batch():
    return relu(("batch", 8))


PLAN = b"mesh: {data: 2}\nshard:\n  - {tensor: hidden, dims: [data, _]}\n"
FILES = {"m.onnx": mlp(), "r.onnx": batch(), "p.yaml": PLAN, "q.yaml": PLAN + b"uneven: true\n", "bom.yaml": b"\xef\xbb\xbf" + PLAN, "x.npz": arrays(), "empty": b"",
         "t.csv": b"0F0,0B0\n1F0,1B0\n", "bom.csv": b"\xef\xbb\xbf0F0,0B0\n1F0,1B0\n", "bom.json": b"\xef\xbb\xbf{\"/mlp/up\": 5}",
         "words.yaml": b"\xff\xfem\0e\0s\0h\0", "model.pt": b"PK\x03\x04\x14\0\0\0model/data.pkl", "m.safetensors": b"\x40\0\0\0\0\0\0\0{\"w\": {}}",
         "home.yaml": PLAN + b"cluster: ~/c.yaml\n", "one.npy": b"\x93NUMPY\x01\0v\0"}

TABLE = r"""
0 -v
0 -V
0 help run
0 run --help
0 help
2 help nonsense                                          | unknown command 'nonsense'
2 help rn                                                | did you mean 'run'?
2 help run m.onnx                                        | unexpected argument 'm.onnx'
2 manual run                                             | unexpected argument 'run'
2 rn m.onnx                                              | did you mean 'run'?
2 RUN m.onnx                                             | did you mean 'run'?
2 m.onnx                                                 | 'm.onnx' is a file; cleave inspect m.onnx
2 --mesh data=2 run m.onnx                               | '--mesh' is before the command; 'cleave run'
2 --quiet                                                | there is no command
2 run m.onnx -v                                          | unknown option '-v'; did you mean '--verbose'
2 run m.onnx -q                                          | did you mean '--quiet'
2 run m.onnx --chek                                      | did you mean '--check'?
2 run m.onnx -mesh data=2                                | did you mean '--mesh'?
2 run m.onnx --Check                                     | did you mean '--check'
2 run m.onnx r.onnx                                      | unexpected argument 'r.onnx'
2 run m.onnx --mesh data=2x                              | expected a size
2 run m.onnx --mesh data=-2                              | expected a size
2 run m.onnx --mesh data=99999999999999999999            | expected a size
2 run m.onnx --mesh data=2,,model=2                      | expected an axis
2 run m.onnx --mesh data=2 --mesh model=2                | '--mesh' is given twice; data=2; model=2
2 shard m.onnx --plan p.yaml --plan q.yaml -o o.mlir     | '--plan' is given twice; p.yaml; q.yaml
2 compile m.onnx -o a -o b                               | '-o' is given twice
2 run m.onnx --seed 1 --seed 2                           | '--seed' is given twice
0 run m.onnx --seed 1 --seed 1 --quiet
2 run m.onnx --seed -1                                   | '--seed -1'; expected a number
2 run m.onnx --seed 1.5                                  | expected a number
2 bench m.onnx --repeat 0                                | '--repeat 0'; at least one call
2 bench m.onnx --repeat -3                               | expected a number
2 run m.onnx --check                                     | no mesh; --check
2 run m.onnx --report r.json                             | no mesh; --report
2 run m.onnx --precision bf16                            | --executor=program
2 run m.onnx --precision BF16 --executor=program         | did you mean 'bf16'?
2 run m.onnx --precision fp16 --executor=program         | expected one of; did you mean 'bf16'?
2 run m.onnx --allow tf32                                | --device
2 run m.onnx --device tpu                                | expected one of host, cuda, cuda-emulated
2 run m.onnx --executor=programm                         | did you mean 'program'?
2 run m.onnx --color maybe                               | expected one of
2 run m.onnx --emit imported                             | stops before
2 run m.onnx --against m.onnx                            | --against
2 run m.onnx --weights .                                 | --weights
2 run m.onnx --rtol 1e-3                                 | --check
2 run m.onnx --mesh data=2 --check --rtol -1             | not negative
2 compile m.onnx                                         | -o m.cleave
2 compile m.onnx -o c --target cuda                      | cuda:sm_90
2 compile m.onnx -o c --target gpu                       | --target gpu
2 compile m.onnx -o c --target cuda:sm_10                | sm_10
2 compile m.onnx -o c --isa nonsense                     | nonsense
1 compile m.onnx -o no/where                             | no/where
1 compile m.onnx -o .                                    | folder
2 shard m.onnx -o o.mlir                                 | no mesh; --mesh
2 explain m.onnx                                         | no mesh; --mesh
2 shard m.onnx --mesh data=2 --emit optimzed -o o.mlir   | did you mean 'optimized'?
2 shard m.onnx --mesh data=2 --shard hidden=data -o o    | PATTERN=[data, _]
2 shard m.onnx --mesh data=2 --shard hidden=[data] -o o  | --shard:1:8; 2 dims
2 shard m.onnx --mesh data=2 --shard hidden=[date,_] -o o | did you mean 'data'?
2 shard m.onnx --mesh data=3 --shard hidden=[data,_] -o o | --shard:1:9; does not divide
2 shard m.onnx --mesh data=2 --shard idde=[data,_] -o o  | try '*idde*'; 'hidden'
2 shard m.onnx --mesh data=2 --shard node:mlp#0=[_,_] -o o | try '*mlp*'
2 shard m.onnx --mesh data=2 --cluster 8xH20 -o o        | --cluster; 8xH200
2 shard m.onnx --mesh data=2 --cluster 4xL4-nvlink -o o   | --cluster; L4 has no NVLink
2 shard m.onnx --mesh data=2 --gpu H1000 -o o             | --gpu; H100
2 explain m.onnx --plan p.yaml idde                      | no tensor, node or module; hidden
2 explain m.onnx --plan p.yaml '#99'                     | '#99'; nothing is sent
2 inspect m.onnx --json                                  | --json
2 export m.onnx                                          | -o DIR
2 import m.onnx extra                                    | unexpected argument 'extra'
2 completion tcsh                                        | bash or zsh
1 run missing.onnx                                       | missing.onnx; no such file
1 run .                                                  | folder
1 run empty                                              | the file is empty
1 run x.npz                                              | an .npz archive; not a model
1 run p.yaml                                             | a plan; --plan
1 run model.pt                                           | torch.save
1 run m.safetensors                                      | safetensors
1 shard p.yaml --plan m.onnx -o o.mlir                   | m.onnx:1:1; an ONNX model; not a plan
1 run m.onnx --plan x.npz                                | x.npz:1:1; an .npz archive; not a plan
1 run m.onnx --plan words.yaml                           | UTF-16
1 run m.onnx --plan .                                    | .: error: cannot read the plan; directory
1 run m.onnx --plan missing.yaml                         | missing.yaml: error; no such file
1 run m.onnx --plan empty                                | empty:1:1; the plan is empty
1 run m.onnx --inputs p.yaml                             | a plan; .npz
1 run m.onnx --inputs m.onnx                             | an ONNX model; .npz
1 run m.onnx --inputs one.npy                            | a single array; .npz
1 run m.onnx --inputs missing.npz                        | missing.npz; no such file
2 run m.onnx --plan=~/p.yaml                             | '--plan ~/p.yaml'; shell
2 run ~/m.onnx                                           | '~/m.onnx'; shell
2 compile m.onnx -o ~nobody-of-that-name/m               | shell
1 shard m.onnx --plan home.yaml -o o.mlir                | home.yaml:4:10; shell
0 run m.onnx --plan bom.yaml --quiet
1 run r.onnx                                             | --dim batch
2 run r.onnx --dim batch                                 | NAME=SIZE
2 run r.onnx --dim batch=-1                              | NAME=SIZE
2 run r.onnx --dim Batch=2                               | --dim:1:1: error: the model has no symbolic dim 'Batch'; it has batch
2 inspect r.onnx --dim Batch=2                           | --dim:1:1: error: the model has no symbolic dim 'Batch'; it has batch
2 run r.onnx --shape z=2x8                               | --shape:1:1: error: a shape is given for input 'z', which the model lacks
2 run r.onnx --shape x=2x8x1                             | --shape:1:1: error: input 'x' has 2 dims, but the shape given for it has 3
2 run r.onnx --shape x=2x9                               | --shape:1:1: error: dim 1 of input 'x' is 8, but the shape given for it has 9
2 run r.onnx --dim batch=3 --shape x=2x8                 | --shape:1:1: error: dim 0 of input 'x' ('batch') is 3, but the shape given for it has 2
2 run r.onnx --shape x=2,8                               | NAME=8x128
2 schedule --schedule 1F1B --ranks 2 --microbatches 4    | did you mean '1f1b'?
2 schedule --schedule zbv --ranks 2 --microbatches 4     | did you mean 'zb-v'?
2 schedule --schedule GPipe --ranks 2 --microbatches 4   | did you mean 'gpipe'?
2 schedule --compare 1f1b,zbv --ranks 2 --microbatches 4 | did you mean 'zb-v'?
2 schedule --ranks 2                                     | --microbatches
2 schedule --ranks -2 --microbatches 2                   | '--ranks -2'
2 schedule --ranks 2 --microbatches 4 --cost F=x         | NAME=NUMBER
2 schedule --ranks 2 --microbatches 4 --cost G=1         | F, I, W
2 schedule --ranks 2 --microbatches 4 --draw p.png       | .svg
2 schedule m.onnx --plan p.yaml                          | --ranks
1 schedule --schedule missing.csv                        | missing.csv
1 schedule --ranks 2 --microbatches 2 --costs m.onnx     | m.onnx; an ONNX model; not JSON
0 schedule --schedule bom.csv --quiet
1 schedule m.onnx --ranks 2 --microbatches 2 --profile p.yaml | p.yaml:1:1; a plan; not JSON
0 schedule m.onnx --ranks 1 --microbatches 2 --profile bom.json --quiet
"""


def cases():
    for number, line in enumerate(TABLE.strip().splitlines()):
        typed, _, words = line.partition(" | ")
        code, *arguments = shlex.split(typed)
        yield Case(f"line-{number}: {' '.join(arguments)}", arguments, FILES, [word.strip() for word in words.split(";") if word.strip()], int(code))
