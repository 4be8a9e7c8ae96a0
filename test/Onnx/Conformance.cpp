//===- Conformance.cpp - imports and runs many ONNX models ----------------===//
//
//   cleave-conformance [--program|--guards|--emulated] CASES
//
// Each line of CASES is `name<TAB>model<TAB>arrays.npz<TAB>rtol<TAB>atol`; the arrays are named `in:X` and `out:Y`.
// `len:X` is how many elements an input has that is a sequence or an optional value: arrays `in:X.0`, `in:X.1` and so on.
// Each model is imported with the shapes of its inputs, run by the reference evaluator (with --program: compiled, and run
// as a program; with --guards as one whose kernels run between pages that fault; with --emulated as one for a CUDA device that this machine plays), and compared as ONNX's own
// backend tests do: |got - want| <= atol + rtol * |want|, integers exactly; where atol is infinite, only types and shapes
// (of random numbers). One line per case goes to standard output:
//
//   PASS name                      with --guards also <TAB>how much ran between guards
//   REFUSED name<TAB>reason        the importer said no
//   WRONG name<TAB>what            imported, but another result, or none
//   CRASH name<TAB>how
//
// Every case runs in a process of its own, so that a crash is one case's result and nothing else.
//
//===----------------------------------------------------------------------===//
#include "../Codegen/Guards.h"
#include "cleave/Compiler/Compilation.h"
#include "cleave/Compiler/RunProgram.h"
#include "cleave/Compiler/Values.h"
#include "cleave/Import/Onnx/Import.h"
#include "cleave/Program/File.h"
#include "cleave/Reference/Evaluator.h"
#include "cleave/Support/Npz.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cmath>
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using namespace cleave;
using reference::Tensor;

namespace {
struct Case {
  std::string name, model, arrays;
  double rtol, atol;
};
/// Who runs it.
enum class Way { Evaluator, Program, Guards, Emulated };
/// A case may take this long: the slowest takes a tenth of it, and, with sanitizers, a minute on a busy machine.
constexpr unsigned kSecondsPerCase = 300;
} // namespace

/// numpy's name of an element type, as in NpyArray.
static std::string getDtype(Type type) {
  if (type.isBF16())
    return "V2";
  if (type.isInteger(1))
    return "b1";
  // Floats of 8 bits and all of 4 and 2 are bytes.
  if (isa<FloatType>(type) ? type.getIntOrFloatBitWidth() <= 8 : type.isInteger(2) || type.isInteger(4))
    return "V1";
  StringRef letter = isa<FloatType>(type) ? "f" : type.isUnsignedInteger() ? "u" : "i";
  return (letter + Twine(type.getIntOrFloatBitWidth() / 8)).str();
}

static double toDouble(StringRef dtype, const char *element) {
  auto read = [&](auto number) {
    memcpy(&number, element, sizeof(number));
    return double(number);
  };
  auto widen = [&](const llvm::fltSemantics &semantics) {
    uint16_t bits;
    memcpy(&bits, element, 2);
    APFloat number(semantics, APInt(16, bits));
    bool losesInfo;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
    return number.convertToDouble();
  };
  if (dtype == "f4")
    return read(float());
  if (dtype == "f8")
    return read(double());
  if (dtype == "f2")
    return widen(APFloat::IEEEhalf());
  if (dtype == "V2")
    return widen(APFloat::BFloat());
  if (dtype == "V1") // bits
    return read(uint8_t());
  switch (*NpyArray::getElementBytes(dtype)) {
  case 1:
    return dtype[0] == 'i' ? read(int8_t()) : read(uint8_t());
  case 2:
    return dtype[0] == 'i' ? read(int16_t()) : read(uint16_t());
  case 4:
    return dtype[0] == 'i' ? read(int32_t()) : read(uint32_t());
  default:
    return dtype[0] == 'i' ? read(int64_t()) : read(uint64_t());
  }
}

static std::string compare(const Tensor &got, const NpyArray &want, double rtol, double atol) {
  std::string dtype = getDtype(got.getElementType());
  bool isFloat = isa<FloatType>(got.getElementType());
  bool isRandom = std::isinf(atol);
  // Expected values may be wider floats than the result: numpy has no bfloat16.
  bool isWidened = isFloat && want.dtype == "f4" && dtype == "V2";
  if (dtype != want.dtype && !isWidened)
    return "element type " + dtype + ", expected " + want.dtype;
  if (got.getShape() != ArrayRef(want.shape))
    return llvm::formatv("shape [{0}], expected [{1}]", llvm::make_range(got.getShape().begin(), got.getShape().end()),
                         llvm::make_range(want.shape.begin(), want.shape.end()));
  if (isRandom)
    return "";
  int64_t gotBytes = *NpyArray::getElementBytes(dtype), wantBytes = *NpyArray::getElementBytes(want.dtype);
  for (int64_t i = 0, n = got.getNumElements(); i < n; ++i) {
    const char *g = got.getBytes().data() + i * gotBytes, *w = want.data.data() + i * wantBytes;
    if (gotBytes == wantBytes && memcmp(g, w, gotBytes) == 0)
      continue;
    double a = toDouble(dtype, g), b = toDouble(want.dtype, w);
    bool isEqual = a == b || (std::isnan(a) && std::isnan(b));
    if (dtype == "V1")
      return llvm::formatv("element {0} has the bits {1:x}, expected {2:x}", i, uint8_t(*g), uint8_t(*w));
    if (isFloat && (isEqual || std::abs(a - b) <= atol + rtol * std::abs(b)))
      continue;
    return llvm::formatv("element {0} is {1:F9}, expected {2:F9}", i, a, b);
  }
  return "";
}

static Tensor makeTensor(RankedTensorType type, const NpyArray &array) {
  Tensor tensor = Tensor::zeros(type);
  llvm::copy(array.data, tensor.write<char>().begin());
  return tensor;
}

static std::string getName(DictionaryAttr attributes) {
  auto name = attributes ? attributes.getAs<StringAttr>("nn.name") : StringAttr();
  return name ? name.str() : "";
}

/// The element type of an array; null for one that no tensor has.
static Type getElementType(MLIRContext *context, StringRef dtype) {
  Builder b(context);
  for (Type type :
       {Type(b.getF32Type()), Type(b.getF16Type()), Type(b.getBF16Type()), Type(b.getF64Type()), Type(b.getI1Type())})
    if (getDtype(type) == dtype)
      return type;
  for (unsigned width : {8, 16, 32, 64})
    for (Type type : {b.getIntegerType(width), b.getIntegerType(width, /*isSigned=*/false)})
      if (getDtype(type) == dtype)
        return type;
  return {};
}

/// The case's inputs; what is wrong with them, or an empty string.
static std::string getInputs(func::FuncOp func, const NpzArrays &arrays, SmallVector<Tensor> &inputs) {
  for (unsigned i = 0; i < func.getNumArguments(); ++i) {
    std::string name = getName(func.getArgAttrDict(i));
    const NpyArray *array = findArray(arrays, "in:" + name);
    auto type = cast<RankedTensorType>(func.getArgument(i).getType());
    if (!array || array->dtype != getDtype(type.getElementType()))
      return "input '" + name + "' has no array of its type";
    inputs.push_back(makeTensor(type, *array));
  }
  return "";
}

static std::string compareAll(func::FuncOp func, const NpzArrays &arrays, const Case &test, ArrayRef<Tensor> outputs) {
  // Of a list there may be fewer elements than expected: all that are expected must be there.
  size_t expected =
      llvm::count_if(arrays, [](const auto &entry) { return StringRef(entry.first).starts_with("out:"); });
  if (expected > outputs.size())
    return llvm::formatv("{0} outputs, expected {1}", outputs.size(), expected);
  for (auto [i, output] : llvm::enumerate(outputs)) {
    std::string name = getName(func.getResultAttrDict(i));
    const NpyArray *array = findArray(arrays, "out:" + name);
    if (!array)
      return "output '" + name + "' has no expected array";
    std::string difference = ::compare(output, *array, test.rtol, test.atol);
    if (!difference.empty())
      return "output '" + name + "': " + difference;
  }
  return "";
}

/// Runs `func` on the case's inputs and compares its outputs; what is wrong, or an empty string.
static std::string runAndCompare(func::FuncOp func, const NpzArrays &arrays, const Case &test) {
  SmallVector<Tensor> inputs, outputs;
  if (std::string problem = getInputs(func, arrays, inputs); !problem.empty())
    return problem;
  if (failed(reference::runGlobal(func, inputs, outputs)))
    return "does not run";
  return compareAll(func, arrays, test, outputs);
}

/// Compiles the rest of the way, runs the program, and compares; what is wrong, or an empty string.
static std::string runProgramAndCompare(Compilation &compilation, const NpzArrays &arrays, const Case &test, Way way) {
  OwningOpRef<ModuleOp> original = compilation.getModule().clone();
  auto func = original->lookupSymbol<func::FuncOp>("main");
  SmallVector<Tensor> inputs;
  if (std::string problem = getInputs(func, arrays, inputs); !problem.empty())
    return problem;
  compilation.useOneDevice();
  std::unique_ptr<Assembly> assembly = compilation.makeProgram("/");
  if (!assembly)
    return "does not compile";
  test::GuardLog log;
  runtime::ExecutorOptions how;
  if (way == Way::Guards)
    how.makeDevice = [&] { return test::makeGuardedHost(assembly->program, log); };
  llvm::Expected<std::unique_ptr<runtime::Executor>> executor = openProgram(*assembly, "/", how);
  if (!executor)
    return llvm::toString(executor.takeError());
  llvm::Expected<SmallVector<Tensor>> outputs = runProgram(**executor, inputs, getOutputTypes(func));
  if (std::string fault = log.get(); outputs && !fault.empty())
    return fault;
  return outputs ? compareAll(func, arrays, test, *outputs) : llvm::toString(outputs.takeError());
}

/// Numbers of elements, by names of inputs; true for an array that is one.
template <typename Dims> static bool readLength(StringRef name, const NpyArray &array, Dims &dims) {
  if (!name.consume_front("len:"))
    return false;
  int64_t length;
  memcpy(&length, array.data.data(), sizeof(length));
  dims[name.str()] = length;
  return true;
}

/// The line that reports the case.
static std::string runProgramCase(const Case &test, Way way) {
  auto arrays = readNpz(test.arrays);
  if (!arrays)
    return "WRONG " + test.name + "\t" + llvm::toString(arrays.takeError());
  CompileOptions options;
  options.model = test.model;
  options.inputs = test.arrays;
  for (auto &[name, array] : *arrays)
    readLength(name, array, options.dims);
  if (way == Way::Emulated)
    options.target = "cuda:emulated";
  options.guardsScratch = way == Way::Guards;
  Compilation compilation(options);
  bool isLoaded = compilation.load();
  std::string problem = isLoaded ? runProgramAndCompare(compilation, *arrays, test, way) : "", message;
  for (const cleave::Diagnostic &diagnostic : compilation.getDiagnostics())
    if (message.empty() && diagnostic.severity == cleave::Diagnostic::Severity::Error)
      message = diagnostic.message;
  if (!isLoaded)
    return "REFUSED " + test.name + "\t" + message;
  if (!problem.empty())
    return "WRONG " + test.name + "\t" + problem + (message.empty() ? "" : ": " + message);
  return "PASS " + test.name + (way == Way::Guards ? "\t" + test::describeGuarded() : "");
}

/// The line that reports the case.
static std::string runCase(const Case &test) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  std::string message;
  context.getDiagEngine().registerHandler([&](mlir::Diagnostic &diagnostic) {
    if (message.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
      message = diagnostic.str();
    return success();
  });
  auto arrays = readNpz(test.arrays);
  if (!arrays)
    return "WRONG " + test.name + "\t" + llvm::toString(arrays.takeError());
  onnx::ImportOptions options;
  for (auto &[name, array] : *arrays) {
    StringRef input = name;
    if (readLength(name, array, options.dims))
      continue;
    Type elementType = getElementType(&context, array.dtype);
    if (!input.consume_front("in:"))
      continue;
    options.shapes[input].assign(array.shape.begin(), array.shape.end());
    if (!elementType) // bytes of whatever the model says; no shape depends on them
      continue;
    options.inputValues[input] = makeTensor(RankedTensorType::get(array.shape, elementType), array);
  }
  OwningOpRef<ModuleOp> module = onnx::importOnnx(&context, test.model, options);
  if (!module)
    return "REFUSED " + test.name + "\t" + message;
  std::string problem = "does not verify";
  if (succeeded((*module).verify()))
    problem = runAndCompare((*module).lookupSymbol<func::FuncOp>("main"), *arrays, test);
  if (!problem.empty())
    return "WRONG " + test.name + "\t" + problem + (message.empty() ? "" : ": " + message);
  return "PASS " + test.name;
}

/// Runs the case in a child and gives its line, or one that says how the child ended.
static std::string runGuarded(const Case &test, Way way) {
  int pipes[2];
  if (pipe(pipes) != 0)
    return "CRASH " + test.name + "\tno pipe";
  pid_t child = fork();
  if (child == 0) {
    close(pipes[0]);
    alarm(kSecondsPerCase);
    std::string line = way == Way::Evaluator ? runCase(test) : runProgramCase(test, way);
    ssize_t written = write(pipes[1], line.data(), line.size());
    _exit(written == ssize_t(line.size()) ? 0 : 1);
  }
  close(pipes[1]);
  std::string line;
  char buffer[4096];
  for (ssize_t count; (count = read(pipes[0], buffer, sizeof(buffer))) > 0;)
    line.append(buffer, count);
  close(pipes[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return line;
  if (WIFSIGNALED(status))
    return "CRASH " + test.name + "\tsignal " + strsignal(WTERMSIG(status));
  return "CRASH " + test.name + "\texit code " + std::to_string(WEXITSTATUS(status));
}

int main(int argc, char **argv) {
  StringRef word = argc == 3 ? argv[1] : "";
  Way way = word == "--program"    ? Way::Program
            : word == "--emulated" ? Way::Emulated
            : word == "--guards"   ? Way::Guards
                                   : Way::Evaluator;
  auto buffer = llvm::MemoryBuffer::getFile(argc == 2 || way != Way::Evaluator ? argv[argc - 1] : "");
  if (!buffer)
    return llvm::errs() << "usage: cleave-conformance [--program|--guards|--emulated] CASES\n", 2;
  for (llvm::line_iterator line(**buffer); !line.is_at_eof(); ++line) {
    SmallVector<StringRef> fields;
    line->split(fields, '\t');
    Case test;
    if (fields.size() != 5 || fields[3].getAsDouble(test.rtol) || fields[4].getAsDouble(test.atol))
      return llvm::errs() << "error: bad line '" << *line << "'\n", 2;
    test.name = fields[0].str(), test.model = fields[1].str(), test.arrays = fields[2].str();
    std::string text = runGuarded(test, way);
    llvm::replace(text, '\n', ' ');
    llvm::outs() << text << "\n";
    llvm::outs().flush();
  }
  return 0;
}
