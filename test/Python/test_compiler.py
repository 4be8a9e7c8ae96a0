"""The compiler's calls: values, not text; errors with places."""
import importlib.metadata
import json
import os
import subprocess
import sys
import warnings

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import cleave
import cleave_compiler._native
from conftest import MODELS, make_model, run_onnxruntime

GPT2 = os.path.join(MODELS, "gpt2_ts17.onnx")
SIZES = {"batch": 4, "seq": 16}
SHARD = ["w1=[_, model]", "w2=[model, _]"]


# What is wrong


def test_a_plan_that_does_not_fit_says_where(mlp, tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text("mesh: {model: 3}\nshard:\n  - {tensor: w1, dims: [_, model]}\n")
    with pytest.raises(cleave.Error) as error:
        cleave.shard(mlp, plan=path)
    # 16 columns on 3 ranks.
    assert (error.value.kind, error.value.file, error.value.line) == ("input", str(path), 3)
    assert error.value.column > 0 and "16" in error.value.message and error.value.diagnostics
    assert str(error.value).startswith(f"{path}:3:")


def test_a_plan_without_a_file_is_called_so(mlp):
    with pytest.raises(cleave.Error) as error:
        cleave.shard(mlp, plan=cleave.Plan(mesh={"model": 3}, shard=[cleave.Rule(tensor="w1", dims=["_", "model"])]))
    assert (error.value.file, error.value.line) == ("<plan>", 3)
    assert "/tmp" not in str(error.value)


def test_a_syntax_error_of_a_plan(mlp, tmp_path):
    (tmp_path / "p.yaml").write_text("mesh: {model: 2}\nshrd: []\n")
    with pytest.raises(cleave.Error) as error:
        cleave.shard(mlp, plan=tmp_path / "p.yaml")
    assert error.value.line == 2 and "shrd" in error.value.message


@pytest.mark.parametrize("given,words", [({}, "no mesh is given"), ({"mesh": "model=2", "shard": "nothing=[model]"}, "nothing"),
                                         ({"mesh": "model"}, "model"), ({"mesh": "model=2", "shard": "w1=[model"}, "--shard:1:4: error: not valid YAML")])
def test_options_that_do_not_go_together(mlp, given, words):
    with pytest.raises(cleave.Error, match=words):
        cleave.shard(mlp, **given)


def test_words_that_are_none(mlp):
    with pytest.raises(ValueError, match="'fast' is none of f32, bf16, split"):
        cleave.compile(mlp, precision="fast")
    with pytest.raises(TypeError, match="unknown keyword 'meshes'"):
        cleave.compile(mlp, meshes="model=2")
    with pytest.raises(TypeError):
        cleave.compile(mlp, devices="two")


def test_files_that_are_no_models(tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"not a model")
    with pytest.raises(cleave.Error) as error:
        cleave.compile(tmp_path / "m.onnx")
    assert error.value.kind == "input" and error.value.file.endswith("m.onnx")
    with pytest.raises(cleave.Error, match="nowhere.onnx"):
        cleave.inspect(tmp_path / "nowhere.onnx")


def test_an_op_that_cannot_be_imported_has_its_node(tmp_path):
    from onnx import TensorProto, helper
    from conftest import make_model
    path = make_model(tmp_path / "m.onnx", [helper.make_node("Unknown", ["x"], ["y"], name="/layer/odd", domain="")], [("x", TensorProto.FLOAT, [2])],
                      [("y", TensorProto.FLOAT, [2])])
    with pytest.raises(cleave.Error) as error:
        cleave.compile(path)
    assert error.value.node == "/layer/odd" or "/layer/odd" in str(error.value)


def test_warnings_are_warnings(mlp):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cleave.shard(mlp, mesh="model=2", plan=cleave.Plan(shard=[cleave.Rule(tensor="{w1,w9}", dims=["_", "model"])]))
    assert any(issubclass(one.category, cleave.CleaveWarning) and "w9" in str(one.message) for one in caught)


# Reports


def test_shard_predicts_what_ranks_send_and_store(mlp, tmp_path):
    report = cleave.shard(mlp, mesh="model=2", shard=SHARD, cluster="8xH100-nvlink")
    assert report.parameters.bytes == 2 * 8 * 16 * 4 and report.parameters.bytes_per_rank == 8 * 16 * 4
    assert report.wire_bytes_per_rank == 4 * 8 * 4 and report.totals["all_reduce"].count == 1
    assert report.time.cluster == "8xH100-nvlink" and report.time.communication_ns > 0 and report.collectives[0].ns > 0
    # Products: 2 flops each, of both matrices.
    assert report.flops.total == pytest.approx(2 * 2 * 4 * 8 * 16, rel=0.2)
    assert cleave.shard(mlp, tmp_path / "m.mlir", mesh={"model": 2}, shard=SHARD).wire_bytes_per_rank == 4 * 8 * 4
    assert "spmd.all_reduce" in (tmp_path / "m.mlir").read_text()
    assert cleave.shard(mlp, tmp_path / "p.mlir", phase="propagated", mesh="model=2", shard=SHARD) is None
    with pytest.raises(cleave.Error, match="there is no phase 'propagatd'"):
        cleave.shard(mlp, phase="propagatd", mesh="model=2", shard=SHARD)


@pytest.mark.parametrize("executor", ["reference", "program"])
def test_check_holds_ranks_against_one_device(mlp, executor):
    checked = cleave.check(mlp, mesh="model=2", shard=SHARD, executor=executor)
    assert checked and checked.ok and [one.name for one in checked.outputs] == ["y"]
    assert checked.outputs[0].verdict == "ok" and checked.outputs[0].largest < 1e-4 * checked.outputs[0].scale
    assert checked.report.ranks == 2 and "<table>" in checked._repr_html_()


def test_check_that_finds_a_difference_is_false(mlp):
    # Sums in another order are not equal to the last bit.
    checked = cleave.check(mlp, mesh="model=8", shard=SHARD, rtol=0, atol=0)
    assert not checked.ok and not checked
    assert checked.outputs[0].verdict == "differs" or checked.outputs[0].apart is not None


def test_explain_gives_the_chain_to_the_rule(mlp):
    explained = cleave.explain(mlp, "r", mesh="model=2", plan=cleave.Plan(shard=[cleave.Rule(tensor="w1", dims=["_", "model"])]))
    value, = explained.values
    assert value.name == "r" and value.sharding == "[_, model]"
    axis, = value.axes
    assert (axis.dim, axis.axes, axis.chain[-1].kind) == (1, "model", "annotation")
    assert [one.name for one in cleave.explain(mlp, mesh="model=2", shard=SHARD).values].count("h") == 1
    with pytest.raises(cleave.Error, match="nothing_like_it"):
        cleave.explain(mlp, "nothing_like_it", mesh="model=2", shard=SHARD)


def test_inspect_says_what_is_in_a_model_and_in_a_program(mlp, batched, tmp_path):
    outline = cleave.inspect(mlp)
    assert [(one.name, one.type, one.bytes) for one in outline.parameters] == [("w1", "f32[8, 16]", 512), ("w2", "f32[16, 8]", 512)]
    assert outline.open == "" and outline.flops == 2 * 2 * 4 * 8 * 16 and outline.inputs[0].name == "x"
    assert "batch" in cleave.inspect(batched).open
    cleave.compile(mlp, tmp_path / "m.cleave", mesh="model=2", shard=SHARD).close()
    program = cleave.inspect(tmp_path / "m.cleave")
    assert program.ranks == 2 and program.mesh == {"model": 2} and program.variants[0]["inputs"][0]["name"] == "x"


# Plans


def test_a_plan_is_found_and_runs(tmp_path):
    found = cleave.plan(GPT2, 4, cluster="8xH100-nvlink", memory="80GB", dims=SIZES)
    assert found.best.why == "best" and found.best.seconds > 0 and found.cluster == "8xH100-nvlink"
    ranks = np.prod([int(one.split("=")[1]) for one in found.best.mesh.split(",")])
    assert ranks == 4
    # What is found is what is predicted of it, and right.
    found.save(tmp_path / "plan.yaml")
    report = cleave.shard(GPT2, plan=tmp_path / "plan.yaml")
    assert report.ranks == 4 and report.wire_bytes_per_rank == found.best.wire_bytes_per_rank
    assert cleave.check(GPT2, plan=found.plan).ok
    assert cleave.shard(GPT2, plan=found.plan).wire_bytes_per_rank == report.wire_bytes_per_rank


def test_no_plan_fits(mlp):
    with pytest.raises(cleave.Error, match="memory '8 bytes': expected a size"):
        cleave.plan(mlp, 2, cluster="8xH100-nvlink", memory="8 bytes")
    # Half of the weights are 512 bytes.
    with pytest.raises(cleave.Error, match="no plan fits in 500 B a rank"):
        cleave.plan(mlp, 2, cluster="8xH100-nvlink", memory=500, stages=1)


def test_plans_print_as_yaml():
    plan = cleave.Plan(mesh={"data": 2, "model": 2}, dims={"batch": 4},
                       shard=[cleave.Rule(tensor="x", dims=["data", "_"]), cleave.Rule(node="*/q/MatMul", operand=1, dims=["?", ["data", "model"]]),
                              cleave.Rule(module="layers.*.up", dims=["_", "model?"], more={"where": "divides", "priority": 1})],
                       state={"past_*": "present_*"}, more={"pipeline": {"axis": "stage", "microbatches": 4}})
    text = str(plan)
    assert text.splitlines()[0] == "mesh: {data: 2, model: 2}" and '"*/q/MatMul"' in text and '["?", [data, model]]' in text
    assert cleave.Plan.from_yaml(text) == plan


@pytest.mark.parametrize("name", ["bert.yaml", "gpt2.yaml", "minilm.yaml", "bert-3d.yaml", "bert-pipeline.yaml", "finetune.yaml", "generate.yaml",
                                  "train-pipeline.yaml"])
def test_plans_of_the_examples_are_values(name):
    with open(os.path.join(MODELS, "..", "..", "examples", name), encoding="utf-8") as file:
        plan = cleave.Plan.from_yaml(file.read())
    assert (plan.mesh or plan.shard) and cleave.Plan.from_yaml(str(plan)) == plan


def test_schedules(tmp_path):
    # 1F1B: (m + p - 1) (F + I + W) of 4 ranks, 8 microbatches.
    made = cleave.schedule(name="1f1b", ranks=4, microbatches=8, cost={"F": 1, "I": 1, "W": 1})
    assert (made.ranks, made.microbatches, made.makespan) == (4, 8, (8 + 4 - 1) * 3)
    assert len(made.table.splitlines()) == 4 and made.bound <= made.makespan
    (tmp_path / "table.csv").write_text(made.table)
    assert cleave.schedule(name=str(tmp_path / "table.csv"), cost={"F": 1, "I": 1, "W": 1}).makespan == made.makespan
    of_model = cleave.schedule(GPT2, "forward", ranks=2, microbatches=2, cluster="8xH100-nvlink", mesh="stage=2", dims=SIZES,
                               plan=cleave.Plan(more={"pipeline": {"axis": "stage", "microbatches": 2}}))
    assert of_model.ranks == 2 and of_model.makespan > 0
    with pytest.raises(cleave.Error) as error:
        cleave.schedule(name="1f2b", ranks=2, microbatches=2)
    assert error.value.kind == "options" and "1f2b" in str(error.value)


# Pipelines


def test_a_pipeline_gives_what_one_device_gives(mlp, x):
    plan = cleave.Plan(mesh={"stage": 2}, more={"pipeline": {"axis": "stage", "microbatches": 2, "schedule": "forward"}})
    with cleave.compile(mlp, plan=plan) as program:
        np.testing.assert_allclose(program(x), run_onnxruntime(mlp, {"x": x})["y"], rtol=1e-5, atol=1e-5)
        assert "send" in program.report.totals


# Training

TRAIN = {"loss": {"kind": "mse", "of": "y"}, "optimizer": {"kind": "sgd"}, "rate": 0.01}


def make_samples(count):
    random = np.random.default_rng(5)
    return {"x": random.standard_normal((count, 8)).astype(np.float32), "labels": random.standard_normal((count, 8)).astype(np.float32)}


def take_steps(model, samples, steps):
    """Losses and weights of steps of SGD, in double."""
    w1, w2 = (onnx.numpy_helper.to_array(one).astype(np.float64) for one in onnx.load(model).graph.initializer)
    losses = []
    for step in range(steps):
        x, labels = (samples[name][4 * step:4 * step + 4].astype(np.float64) for name in ("x", "labels"))
        h = x @ w1
        r = np.maximum(h, 0)
        apart = r @ w2 - labels
        losses.append(np.mean(apart**2))
        dy = 2 * apart / apart.size
        dw2, dw1 = r.T @ dy, x.T @ ((dy @ w2.T) * (h > 0))
        w1, w2 = w1 - 0.01 * dw1, w2 - 0.01 * dw2
    return losses, {"w1": w1, "w2": w2}


@pytest.mark.parametrize("mesh", [{"data": 1}, {"data": 2}])
def test_training_takes_the_steps_of_numpy(mlp, tmp_path, mesh):
    samples = make_samples(20)
    want, weights = take_steps(mlp, samples, 5)
    plan = cleave.Plan(mesh=mesh, shard=[cleave.Rule(tensor="x", dims=["data", "_"]), cleave.Rule(tensor="labels", dims=["data", "_"])],
                       more={"train": TRAIN})
    result = cleave.train(mlp, samples, plan=plan, steps=5, shuffled=False, save=tmp_path / "s.safetensors", export=tmp_path / "tuned.onnx")
    np.testing.assert_allclose(result.losses, want, rtol=1e-4)
    assert (result.steps, result.samples) == (5, 20) and result.last_loss == pytest.approx(want[-1], rel=1e-4)
    for tensor in onnx.load(tmp_path / "tuned.onnx").graph.initializer:
        np.testing.assert_allclose(onnx.numpy_helper.to_array(tensor), weights[tensor.name], rtol=1e-4, atol=1e-5)
    with cleave.Trainer(mlp, plan=plan) as trainer:
        losses = [trainer.step(x=samples["x"][4 * i:4 * i + 4], labels=samples["labels"][4 * i:4 * i + 4]) for i in range(3)]
        trainer.save(tmp_path / "half.safetensors")
        # The loss before a step is the one that the step gives, and asking changes nothing.
        batch = {name: array[12:16] for name, array in samples.items()}
        assert [trainer.eval(batch), trainer.eval(**batch)] == pytest.approx([want[3]] * 2, rel=1e-4)
        losses += [trainer.step({name: array[4 * i:4 * i + 4] for name, array in samples.items()}) for i in range(3, 5)]
        np.testing.assert_allclose(losses, want, rtol=1e-4)
        for name, array in weights.items():
            np.testing.assert_allclose(trainer.state_dict()[name], array, rtol=1e-4, atol=1e-5)
        trainer.load(tmp_path / "half.safetensors")
        again = [trainer.step({name: array[4 * i:4 * i + 4] for name, array in samples.items()}) for i in range(3, 5)]
        np.testing.assert_allclose(again, losses[3:], rtol=1e-6)
        assert trainer.report.ranks == mesh["data"] and "gradients" in trainer.report.memory_by_role


def test_training_without_data_or_a_plan_says_so(mlp, tmp_path):
    with pytest.raises(cleave.Error, match="loss"):
        cleave.Trainer(mlp, mesh="data=2")
    with pytest.raises(cleave.Error, match="steps"):
        cleave.train(mlp, make_samples(8), plan=cleave.Plan(more={"train": TRAIN}))
    with pytest.raises(cleave.Error, match="labels"):
        cleave.train(mlp, {"x": make_samples(8)["x"]}, plan=cleave.Plan(more={"train": TRAIN}), steps=1)


# Pages, times, and the end of a compilation


def test_a_page_is_what_the_command_writes(mlp, tmp_path):
    options = dict(mesh="model=2", shard=SHARD, keep_plan=True)
    page = cleave.page(mlp, tmp_path / "p.html", **options)
    assert (tmp_path / "p.html").read_text(encoding="utf-8") == page.html and page.json["version"] == 3
    words = [word for rule in SHARD for word in ("--shard", rule)]
    tool = os.path.join(os.path.dirname(sys.executable), "cleave")
    subprocess.run([tool, "page", mlp, "--mesh", "model=2", "--keep-plan", *words, "-o", str(tmp_path / "q.html"), "--quiet"], check=True)
    assert (tmp_path / "q.html").read_text(encoding="utf-8") == page.html
    assert "srcdoc=" in page._repr_html_() and '<html lang' not in page._repr_html_().split("srcdoc=")[0]
    with cleave.compile(mlp, **options) as program:
        assert program.page().json["plans"][0]["axes"] == page.json["plans"][0]["axes"] and "<iframe" in program._repr_html_()
    with pytest.raises(cleave.Error, match="p.html: .*JSON"):
        cleave.page(mlp, measured=tmp_path / "p.html", **options)
    cleave.compile(mlp, tmp_path / "m.cleave", **options).close()
    runner = os.path.join(os.path.dirname(sys.executable), "cleave-run")
    subprocess.run([runner, tmp_path / "m.cleave", "--trace", tmp_path / "t.json"], check=True, capture_output=True)
    run = cleave.page(mlp, measured=tmp_path / "t.json", **options).json["plans"][0]["run"]
    assert {row["rank"] for row in run["rows"]} == {0, 1} and run["makespan"] > 0 and any(sum(layer) for layer in run["layers"])


def test_bench_times_models_and_programs(mlp, tmp_path):
    program = cleave.compile(mlp, tmp_path / "m.cleave", mesh="model=2", shard=SHARD)
    program.close()
    for result in (cleave.bench(mlp, calls=3, mesh="model=2", shard=SHARD), cleave.bench(tmp_path / "m.cleave", calls=3)):
        assert (result.ranks, len(result.runs)) == (2, 3) and min(result.runs) > 0 and result.median in result.runs
        assert result.peak_bytes > 0 and result.commands and sum(one.seconds for one in result.commands) > 0
    with pytest.raises(ValueError, match="calls"):
        cleave.bench(mlp, calls=0)
    with pytest.raises(cleave.Error, match="nowhere"):
        cleave.bench("nowhere.onnx")


# The commands, and the package


def test_commands_are_on_the_path(mlp, tmp_path, x):
    tool = lambda name: os.path.join(os.path.dirname(sys.executable), name)
    run = lambda *words: subprocess.run(words, capture_output=True, text=True)
    program = str(tmp_path / "m.cleave")
    done = run(tool("cleave"), "compile", mlp, "--mesh", "model=2", "--shard", SHARD[0], "-o", program)
    assert done.returncode == 0, done.stderr
    np.savez(tmp_path / "in.npz", x=x)
    done = run(tool("cleave-run"), program, "--inputs", str(tmp_path / "in.npz"), "--outputs", str(tmp_path / "out.npz"))
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "out.npz")["y"], run_onnxruntime(mlp, {"x": x})["y"], rtol=1e-5, atol=1e-5)
    assert run(tool("cleave"), "compile", "nowhere.onnx", "-o", program).returncode == 1
    assert run(tool("cleave"), "--mesh").returncode == 2
    assert cleave.__version__ in run(tool("cleave"), "--version").stdout


def test_versions_are_one():
    assert importlib.metadata.version("cleave-spmd") == cleave.__version__


def test_help_reads_like_the_docs():
    for name in cleave.__all__:
        assert name.startswith("__") or getattr(cleave, name).__doc__, name
    for name in ("compile", "run", "train"):
        call = getattr(cleave, name, None) or cleave.Program.run
        assert "Raises" in cleave.Program.run.__doc__ and call.__doc__


def test_the_runtime_needs_neither_the_compiler_nor_llvm(program_file, x):
    code = ("import sys, numpy as np, cleave_runtime\n"
            "program = cleave_runtime.load(sys.argv[1])\n"
            "print(program(np.ones((4, 8), np.float32)).shape)\n"
            "assert not any(name == 'cleave' or name.startswith('cleave_compiler') for name in sys.modules)\n"
            "assert 'LLVM' not in open('/proc/self/maps').read()\n")
    done = subprocess.run([sys.executable, "-c", code, program_file], capture_output=True, text=True)
    assert done.stdout.strip() == "(4, 8)", done.stderr


@pytest.fixture
def program_file(mlp, tmp_path):
    cleave.compile(mlp, tmp_path / "m.cleave", mesh="model=2", shard=SHARD).close()
    return str(tmp_path / "m.cleave")


def test_reports_are_json_as_well(mlp):
    report = cleave.shard(mlp, mesh="model=2", shard=SHARD)
    assert json.loads(json.dumps(report.json))["version"] == 1


# PyTorch


def test_without_torch_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="pip install torch onnxscript"):
        cleave.from_torch(None, ())


def test_a_module_of_torch(tmp_path):
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

        def forward(self, x):
            return x + self.down(torch.relu(self.up(x)))

    torch.manual_seed(0)
    net = torch.nn.Sequential(Block(), Block())
    x = torch.randn(4, 8)
    model = cleave.from_torch(net, (x,), input_names=["x"], output_names=["y"])
    plan = cleave.Plan(mesh={"model": 2}, shard=[cleave.Rule(module="*.up", dims=["_", "model"]), cleave.Rule(module="*.down", dims=["model", "_"])])
    with cleave.compile(model, plan=plan) as program:
        got = program(x)
        np.testing.assert_allclose(got, net(x).detach().numpy(), rtol=1e-5, atol=1e-5)
        assert program.report.totals["all_reduce"].count == 2
        back = torch.from_dlpack(cleave.to_dlpack(got))
        assert torch.allclose(back, net(x), atol=1e-5)
    assert net.training
    half = cleave.from_torch(net.to(torch.bfloat16), (x.to(torch.bfloat16),), input_names=["x"])
    with cleave.compile(half) as program:
        got = torch.from_dlpack(cleave.to_dlpack(program(x.to(torch.bfloat16).T.contiguous().T)))
        assert got.dtype == torch.bfloat16 and torch.allclose(got.float(), net.float()(x), atol=0.05)


def test_what_is_loaded_late_wants_no_static_room():
    """An extension that wants variables of threads to lie in the block that a process begins with cannot be loaded behind torch."""
    import cleave_compiler
    tool = "/usr/bin/readelf"
    if not os.path.exists(tool):
        pytest.skip("no readelf")
    text = subprocess.run([tool, "-rW", cleave_compiler._native.__file__], capture_output=True, text=True).stdout
    assert "R_X86_64_" in text and not [line for line in text.splitlines() if "R_X86_64_TPOFF64" in line]
