//===- Options.td - the command line of `cleave` -----------*- tablegen -*-===//
//
// Every command and every option, stated once: parsing, --help, completion and the man page come from here. A new option
// is a record here and the member of `Options` (Options.h) that it fills, whose type says how its argument reads. The
// words of an enum stand with the enum. Options that passes take are those of SpmdOptions.td.
//
//===----------------------------------------------------------------------===//
include "SpmdOptions.td"
include "llvm/Option/OptParser.td"

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

def Bench : SubCommand<"bench", "how long a call takes, and where the time goes", "MODEL|PROGRAM [--mesh ..]">;
def Compile : SubCommand<"compile", "a program file, which cleave-run runs by itself", "MODEL [--mesh ..] -o m.cleave">;
def Completion : SubCommand<"completion", "the completion script of a shell, to be evaluated in it",
                            "bash|zsh">;
def Explain : SubCommand<"explain", "why a value is sharded as it is; what each collective is for",
                         "MODEL --mesh .. [VALUE]">;
def Export : SubCommand<"export", "ONNX files of the ranks' programs, with weights cut and collectives as nodes", "MODEL [--mesh ..] -o DIR">;
def Import : SubCommand<"import", "the nn dialect, before any sharding", "MODEL -o out.mlir">;
def Inspect : SubCommand<"inspect", "inputs, outputs, ops, parameters (names as a plan addresses them), FLOPs, "
                                    "what cannot be imported", "MODEL">;
def Lsp : SubCommand<"lsp", "the language server of plan files, on standard input and output, for an editor", "[MODEL]">;
def Manual : SubCommand<"manual", "the man page: cleave manual | man -l -", "">;
def Page : SubCommand<"page", "one HTML file that shows a decision: graph, mesh, memory, schedule, costs; of two plans where they differ",
                      "MODEL [--plan .. | --devices N] -o page.html">;
def Plan : SubCommand<"plan", "a plan that is found: which tensors are split how, by predicted time within the memory of a device",
                     "MODEL --devices N [--cluster ..] [-o plan.yaml]">;
def Run : SubCommand<"run", "runs it on every rank (one, without a mesh); --check also runs it unsharded and compares",
                     "MODEL [--mesh ..] [--check]">;
def Schedule : SubCommand<"schedule", "what each rank of a pipeline does and when: schedules by name, from files, compared, drawn",
                          "[MODEL] --ranks .. --microbatches ..">;
def Shard : SubCommand<"shard", "the partitioned program, or an earlier phase", "MODEL --mesh .. -o out.mlir">;
def Train : SubCommand<"train", "trains a model: the step that a plan's 'train' describes, again and again, on every rank (a thread each)",
                       "MODEL --plan .. --data .. --steps .. [--save ..]">;

defvar kAll = [Bench, Compile, Explain, Export, Import, Inspect, Page, Plan, Run, Shard, Train];
// With those that need no model.
defvar kEvery = !listconcat(kAll, [Schedule]);
defvar kSized = !listconcat(kEvery, [Lsp]);
defvar kSharding = [Bench, Compile, Explain, Export, Page, Run, Shard, Train];
defvar kPlanning = !listconcat(kSharding, [Plan]);

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

// Most options are about a model. Of a program file, which is compiled already, `bench` and `inspect` take those that say so here, and
// refuse all others.
def OfBenchedProgram : OptionFlag;
def OfInspectedProgram : OptionFlag;
defvar kOfAnyProgram = [OfBenchedProgram, OfInspectedProgram];
// Of models, these have an effect as long as something is decided: of a file that is further, or without a mesh, they are warned of.
def UntilPropagated : OptionFlag;
def UntilOptimized : OptionFlag;
// An .mlir file has its shapes.
def OfOnnxModel : OptionFlag;

/// The member of `Options` that an option fills.
class Fills<code member> { code KeyPath = member; code DefaultValue = ""; }

/// `--check`.
class Switch<string name, code member, list<SubCommand> commands, string help>
    : Flag<["--"], name, commands>, Fills<member>, HelpText<help>;

/// `--mesh data=2` and `--mesh=data=2`.
multiclass Value<string name, string argument, code member, list<SubCommand> commands, string help> {
  def NAME : Separate<["--"], name, commands>, Fills<member>, MetaVarName<argument>, HelpText<help>;
  def NAME#_eq : Joined<["--"], name#"=", commands>, Alias<!cast<Option>(NAME)>;
}

// The names of groups only put them in order.
def Model : OptionGroup<"1">, HelpText<"Model">;
let Group = Model in {
let Flags = [OfBenchedProgram] in
defm dim : Value<"dim", "batch=8,seq=128", "dims", kSized,
                 "sizes of symbolic dimensions; of several, batch=1,8,32, compile makes variants in one program, and plan looks at each">;
defm entry : Value<"entry", "NAME", "compile.entry", kEvery, "the function of an .mlir file that is run, where it has several; main without it">;
defm inputs : Value<"inputs", "FILE.npz", "compile.inputs", kEvery, "input tensors by their ONNX names; shapes come from them">;
let Flags = [OfOnnxModel] in
defm shape : Value<"shape", "NAME=8x128", "compile.shapes", kEvery,
                   "shape of an input whose dimensions have no name; may repeat">;
let Flags = kOfAnyProgram in
def no_verify : Switch<"no-verify", "compile.ignoreDigests", kAll, "takes weights (and of bench, programs) that have changed since their digests were made">;
let Flags = [OfBenchedProgram] in
defm weights : Value<"weights", "DIR", "compile.weights", kEvery,
                     "where the weights that an .mlir file, or a program, refers to lie now">;
}

def Sharding : OptionGroup<"2">, HelpText<"Sharding">;
let Group = Sharding in {
defm cluster : Value<"cluster", "NAME|FILE", "compile.cluster", !listconcat(kPlanning, [Schedule]),
                     "the machine, for times and prices: 8xH100-nvlink, .., or a .yaml file; overrides the plan's">;
defm gpu : Value<"gpu", "NAME", "gpu", kPlanning,
                 "H100, L4, .., or sm_90: compiles for it, and its figures are the machine's where no cluster is named">;
defm devices : Value<"devices", "N", "compile.devices", kPlanning,
                     "finds a plan for so many devices; cleave plan writes it down">;
defm like : Value<"like", "STYLE[,..]", "compile.like", kPlanning,
                  "a plan of this style, or one for each axis of --mesh: data, fsdp, megatron, sequence, context, expert, channels, spatial">;
def train : Switch<"train", "compile.train", !listconcat(kPlanning, [Schedule]),
                   "the step that trains the model, as the plan's 'train' says, or --train='{loss: .., optimizer: ..}'">;
// With --check, the options whose argument may be left out.
let Flags = [HelpHidden] in
def train_eq : Joined<["--"], "train=", !listconcat(kPlanning, [Schedule])>, Fills<"compile.trainText">;
defm artifacts : Value<"artifacts", "DIR", "compile.artifacts", kPlanning,
                       "a folder of onnxruntime's generate_artifacts in the place of MODEL: its step, so far as no plan's 'train' says another one">;
def must_fit : Switch<"must-fit", "compile.mustFit", kSharding,
                      "makes it an error where a rank takes more memory than a device of the cluster has">;
defm stages : Value<"stages", "1..8", "plan.stages", [Plan], "numbers of stages that are looked at; 1 leaves pipelines out">;
defm axes : Value<"axes", "N", "axes", [Plan], "axes that a mesh may have; 3 without it">;
defm objective : Value<"objective", "WHAT", "plan.objective", [Plan],
                       "what is to be least: latency, the time of a call (without it); throughput, where calls follow each other; step, of a model with states">;
defm within : Value<"within", "50ms", "within", [Plan], "what a call may take">;
defm top : Value<"top", "K", "top", [Plan], "writes the K best plans into the folder of -o">;
def front : Switch<"front", "plan.wantsFront", [Plan],
                   "time against memory: all plans that no other is better than in both, drawn, and written into the folder of -o">;
defm pin : Value<"pin", "RULE", "pins", [Plan], "holds what a rule says, as --shard does, and says what that costs; may repeat">;
def roles : Switch<"roles", "roles", [Plan], "prints what each weight is to the model, and how the plan splits it">;
def support : Switch<"support", "support", [Plan], "prints which ops no axis can split, and why">;
def explain : Switch<"explain", "explain", [Plan], "prints why: what other stages and each style take, and the collectives that take longest">;
defm emit : Value<"emit", "PHASE", "emit", [Run, Shard], "how far to go">;
}

def Running : OptionGroup<"3">, HelpText<"Running">;
let Group = Running in {
defm against : Value<"against", "MODEL", "against", [Run],
                     "compares a partitioned file with the model that it was made from, as --check does">;
defm atol : Value<"atol", "X", "atol", [Run],
                  "absolute tolerance of --check, times the largest element; default by element type">;
def check : Switch<"check", "check", [Run, Train],
                   "compares every output, ranks against one device; --check=all every tensor that has a name; --check=differences compares gradients with slopes, too">;
let Flags = [HelpHidden] in
def check_eq : Joined<["--"], "check=", [Run, Train]>, Fills<"checkKind">;
defm rtol : Value<"rtol", "X", "rtol", [Run], "relative tolerance of --check; default by element type">;
let Flags = [OfBenchedProgram] in
defm seed : Value<"seed", "N", "seed", [Bench, Run, Schedule, Train], "seed of random inputs, where none are given, of searches, and of the order of samples">;
}

def Programs : OptionGroup<"3a">, HelpText<"Programs">;
let Group = Programs in {
defm chunk_collectives : Value<"chunk-collectives", "N|auto", "compile.sharding.chunks", [Bench, Compile, Run, Shard],
                               "sends sums of products in N parts, or in as many as pay, one while the next is computed">;
defm allow : Value<"allow", "WHAT", "compile.allowed", [Compile, Run],
                   "tf32: products of f32 on CUDA devices take 10 bits of each fraction, for tensor cores; nothing without it">;
def embed_weights : Switch<"embed-weights", "compile.embedWeights", [Compile], "puts the weights into the program, which then needs no model">;
defm device : Value<"device", "DEVICE", "device", [Bench, Run, Train],
                    "what a program runs on: host (without it), cuda, or cuda-emulated, a CUDA device that this machine plays">;
defm executor : Value<"executor", "WHO", "executor", [Run],
                      "the evaluator, or the model compiled into a program first; reference without it">;
defm isa : Value<"isa", "ISA", "compile.isa", [Compile], "processor to compile for, as LLVM names it: native (default), x86-64-v3, ..; portable: "
                 "code for several, picked where it runs">;
defm libraries : Value<"libraries", "HOW", "compile.libraries", [Compile, Run, Train],
                       "of CUDA devices: auto (without it), cuBLASLt and cuDNN where they are found, or none, kernels of Cleave alone">;
defm precision : Value<"precision", "HOW", "compile.precision", [Bench, Compile, Run, Train],
                       "f32 (without it) as the model says, or bf16: floats in memory have half the bytes, sums are f32">;
let Flags = [OfBenchedProgram] in
defm repeat : Value<"repeat", "N", "repeat", [Bench], "how many calls are timed (20)">;
def calibrate : Switch<"calibrate", "calibrate", [Bench], "measures this machine and writes a cluster file, without a model">;
defm target : Value<"target", "TARGET", "compile.target", [Compile, Schedule],
                    "host (without it), or cuda:ARCH[,ARCH..]: sm_80, sm_90, sm_100, sm_120, emulated">;
}

def Training : OptionGroup<"3a1">, HelpText<"Training">;
let Group = Training in {
defm data : Value<"data", "PATH", "train.data", [Train], ".npz, or a folder of .npy or .npz, whose arrays are samples of the inputs and labels">;
defm epochs : Value<"epochs", "N", "train.epochs", [Train], "rounds through all samples, instead of --steps">;
defm order : Value<"order", "HOW", "order", [Train], "of samples: shuffled (without it), anew in each epoch, or given">;
defm eval_data : Value<"eval-data", "PATH", "train.evalData", [Train], "as --data: samples whose mean loss is reported in the end">;
defm eval_every : Value<"eval-every", "N", "train.evalEvery", [Train], "and after so many steps">;
defm resume : Value<"resume", "FILE", "train.resume", [Train], "goes on where that checkpoint was written, on any mesh">;
defm weights_from : Value<"weights-from", "FILE", "train.weightsFrom", [Train], "begins with the weights of a .safetensors file">;
defm save : Value<"save", "FILE", "train.save", [Train], "a checkpoint in the end, .safetensors">;
defm save_every : Value<"save-every", "N", "train.saveEvery", [Train], "and after so many steps">;
defm keep : Value<"keep", "N", "train.keep", [Train], "so many checkpoints, the older ones by their steps (1)">;
defm trained : Value<"export", "FILE.onnx", "trained", [Train], "the model with the weights of --save">;
defm adapters : Value<"export-adapters", "FILE.safetensors", "adapters", [Train], "what 'lora' has trained, by the names of PEFT">;
defm steps_per_call : Value<"steps-per-call", "K", "compile.stepsPerCall", [Bench, Compile, Run, Shard, Train],
                            "a call of the step makes K steps, one behind the other, on K batches (1)">;
defm log : Value<"log", "FILE", "train.log", [Train], "a line for each step, .jsonl or .csv">;
}

def Exports : OptionGroup<"3aa">, HelpText<"Exports">;
let Group = Exports in {
defm collectives : Value<"collectives", "HOW", "collectives", [Export],
                         "auto (without it): onnxruntime's where these mean the same, else Cleave's own; or own: these alone">;
}

def Schedules : OptionGroup<"3b">, HelpText<"Schedules">;
let Group = Schedules in {
defm schedule : Value<"schedule", "NAME|FILE", "schedule.name", [Schedule],
                      "a schedule by name, or a table in a .csv or .json file; 1f1b without it">;
defm ranks : Value<"ranks", "N", "schedule.ranks", [Schedule], "ranks of the pipeline">;
defm microbatches : Value<"microbatches", "N|1..16", "microbatches", [Plan, Schedule],
                          "parts of a batch; of plan those that are looked at">;
defm chunks : Value<"chunks", "N", "schedule.chunks", [Schedule], "stages per rank, where the schedule leaves a choice">;
defm cost : Value<"cost", "F=1,I=1,W=1", "schedule.cost", [Schedule],
                  "times of a rank's whole share: forward, gradients of inputs and of weights; overlap=3: of F and B as one">;
defm stage_scale : Value<"stage-scale", "1,1,2,1", "schedule.stageScale", [Schedule], "factors of the times of stages">;
defm latency : Value<"latency", "T", "schedule.latency", [Schedule], "time of a hop between ranks">;
defm costs : Value<"costs", "FILE.json", "schedule.costs", [Schedule], "times, memory and messages by stage and channel">;
defm profile : Value<"profile", "FILE.json", "schedule.profile", [Schedule],
                     "measured nanoseconds of a model's nodes, {\"node\": 12500}; others keep their modeled time">;
defm memory : Value<"memory", "72GB|F=1,I=0,W=-1", "memory", [Plan, Schedule],
                    "of plan: what a rank may take, instead of what a device has, or least; of schedule: what F takes and I and W release">;
defm memory_limit : Value<"memory-limit", "M", "schedule.memoryLimit", [Schedule], "of each rank, in the units of --memory">;
defm verify : Value<"verify", "FILE.json", "verify", [Plan], "checks a proof that --certificate has written, instead of finding a plan">;
defm placement : Value<"placement", "HOW", "schedule.placement", [Schedule], "of stages on ranks, for auto">;
defm effort : Value<"effort", "HOW", "schedule.effort", [Schedule], "how long auto searches; normal without it, or as a run where the plan of a step says auto">;
defm compare : Value<"compare", "A,B,..|all", "schedule.compare", [Page, Plan, Schedule],
                     "a line for each of several schedules; of plan, --compare A.yaml B.yaml: where two plans differ; of page, a plan beside the first">;
defm measured : Value<"measured", "TRACE.json", "schedule.measured", [Page, Schedule],
                      "what a run took (cleave-run --trace), beside what it should take: in the report, in pictures, on the page">;
defm messages : Value<"messages", "HOW", "schedule.messages", [Schedule],
                      "whether a sender waits for the receiver (rendezvous) or not (async, without it)">;
defm steps : Value<"steps", "N", "schedule.steps", [Schedule, Train], "batches, one after the other; of train, how many steps there are in the end">;
}

def Files : OptionGroup<"4">, HelpText<"Files written">;
let Group = Files in {
def o : Separate<["-"], "o", [Bench, Compile, Export, Import, Page, Plan, Shard]>, Fills<"output">, MetaVarName<"FILE">,
        HelpText<"where to write, a folder for export; a module goes to standard output without it">;
def sample_digests : Switch<"sample-digests", "compile.sampleDigests", [Compile, Import, Shard],
                            "digests of weights are of 12 KiB of each, not of all its bytes: changes of a few elements pass unnoticed">;
defm dump_phases : Value<"dump-phases", "DIR", "compile.dumpPhases", kSharding, "writes one file per phase">;
defm outputs : Value<"outputs", "FILE.npz", "outputs", [Run], "where to write the output tensors">;
defm save_inputs : Value<"save-inputs", "FILE.npz", "saveInputs", [Run], "where to write the input tensors, drawn or given">;
let Flags = [OfBenchedProgram] in
defm report : Value<"report", "FILE.json", "report", !listconcat(kPlanning, [Schedule]), "what was decided, sent and stored">;
defm certificate : Value<"certificate", "FILE.json", "certificate", [Plan], "a proof of how far the plan is from the best, which takes a while">;
defm table : Value<"table", "FILE.csv", "schedule.table", [Schedule],
                   "the schedule as a table of torch.distributed.pipelining; - is standard output">;
def compute_only : Switch<"compute-only", "schedule.computeOnly", [Schedule], "leaves messages out of the table">;
defm html : Value<"html", "FILE.html", "html", [Explain, Schedule, Train], "the page that 'cleave page' makes of the same model and plan, too">;
defm draw : Value<"draw", "FILE", "schedule.draw", [Plan, Schedule],
                   "a picture (.svg), a page (.html) or a trace for Perfetto (.json); of plan --front, a picture">;
}

def Printing : OptionGroup<"5">, HelpText<"Printing">;
let Group = Printing in {
let Flags = kOfAnyProgram in {
defm color : Value<"color", "WHEN", "color", kEvery, "colors of messages">;
def help : Flag<["--"], "help", kEvery>, HelpText<"prints this">;
def quiet : Switch<"quiet", "quiet", kEvery, "prints results only">;
}
let Flags = [OfInspectedProgram] in
def json : Switch<"json", "json", [Inspect], "prints what is in a program file as JSON">;
def remarks : Switch<"remarks", "remarks", kSharding, "prints decisions that override the plan or add communication">;
def time_phases : Switch<"time-phases", "timePhases", kSharding, "prints the seconds of each phase">;
let Flags = kOfAnyProgram in
def verbose : Switch<"verbose", "verbose", kAll,
                     "prints more: remarks, the seconds of each phase, every tensor of a model">;
}

// What passes take.
foreach option = !listconcat(kPlanOptions, kPropagateOptions, kPartitionOptions) in {
  defvar name = !subst("-", "_", option.Name);
  defvar member = "compile.sharding." # option.Member;
  defvar commands = !cond(!eq(option.Name, "plan") : !listconcat(kPlanning, [Schedule]),
                          !or(!eq(option.Name, "mesh"), !eq(option.Name, "shard"), !eq(option.Name, "state"), !eq(option.Name, "uneven")) : kPlanning,
                          true : kSharding);
  defvar flags = !cond(!or(!eq(option.Name, "optimize"), !eq(option.Name, "attention")) : [UntilOptimized],
                       !or(!eq(option.Name, "keep-plan"), !eq(option.Name, "trace-decisions")) : [UntilPropagated],
                       true : []<OptionFlag>);
  if !not(!empty(option.FlagGroup)) then
    let Group = !cast<OptionGroup>(option.FlagGroup), Flags = flags in
      if !empty(option.Argument) then
        def name : Switch<option.Name, member, commands, option.Help>;
      else
        defm name : Value<option.Name, option.Argument, member, commands, option.Help>;
}

def h : Flag<["-"], "h", kEvery>, Alias<help>;
