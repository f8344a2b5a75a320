//===- ltc-run.cpp - Compiles and runs a module of the linalg stage -------===//
//
//   ltc-run program.mlir              prints the outputs
//   ltc-run program.mlir --check      compares them with the same program
//                                     compiled without fusion or scheduling
//   ltc-run program.mlir --time-runs=50    prints the fastest of 50 runs
//   ltc-run program.mlir --sizes=9,64 --check
//                                     compares the outputs of a general
//                                     executable, bound to these sizes; in the
//                                     text, `$(4*s0+s1)` is a number that
//                                     depends on the sizes
//
// The value of an argument is its attribute `run.value` (a dense constant, or a
// number for a dynamic scalar). Without the attribute, a float is 0.5, an int
// is 3, and the elements of a tensor are seeded random numbers: floats in
// [-1, 1), integers in [0, 100), bools, or numbers in [low, high) with the
// attribute `run.range = [low, high]`.
//
//===----------------------------------------------------------------------===//

#include "torch_ltc-c/runtime.h"
#include "torch_ltc/Codegen/CompileLinalgModule.h"
#include "torch_ltc/Kernels/Program.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/SourceMgr.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

using namespace mlir;
namespace cl = llvm::cl;

static cl::opt<std::string> inputFile(cl::Positional, cl::desc("<program>"),
                                      cl::init("-"));
static cl::opt<bool> check("check",
                           cl::desc("compare with the unfused program"));
static cl::opt<double> relativeTolerance("rtol", cl::init(1e-5));
static cl::opt<double> absoluteTolerance("atol", cl::init(1e-6));
static cl::opt<unsigned> seed("input-seed", cl::init(0));
static cl::opt<int> threads("num-threads", cl::init(1));
static cl::opt<int> timeRuns("time-runs", cl::init(0),
                             cl::desc("print the fastest of this many runs"));
static cl::opt<std::string> showStage("print-stage",
                                      cl::desc("print this stage's text"));
static cl::opt<bool> statistics("print-statistics",
                                cl::desc("print compile statistics"));

static cl::list<int64_t>
    boundSizes("sizes", cl::CommaSeparated,
               cl::desc("compile for all sizes, and run with these"));

using Bytes = std::vector<char>;

namespace {

[[noreturn]] void fail(const Twine &message) {
  llvm::errs() << "ltc-run: " << message << "\n";
  exit(1);
}

void require(LtcStatus status) {
  if (status)
    fail(ltcStatusMessage(status));
}

/// Writes `value` as one element of `type` at `to`.
void storeElement(Type type, double value, char *to) {
  if (auto integer = dyn_cast<IntegerType>(type)) {
    int64_t number = int64_t(value);
    memcpy(to, &number, llvm::divideCeil(integer.getWidth(), 8));
    return;
  }
  APFloat number(value);
  bool losesInfo;
  number.convert(cast<FloatType>(type).getFloatSemantics(),
                 APFloat::rmNearestTiesToEven, &losesInfo);
  APInt bits = number.bitcastToAPInt();
  memcpy(to, bits.getRawData(), type.getIntOrFloatBitWidth() / 8);
}

double loadElement(LtcDType dtype, const char *from) {
  auto as = [&](auto value) {
    memcpy(&value, from, sizeof(value));
    return double(value);
  };
  switch (dtype) {
  case LTC_DTYPE_BOOL:
  case LTC_DTYPE_UINT8:
    return as(uint8_t());
  case LTC_DTYPE_INT8:
    return as(int8_t());
  case LTC_DTYPE_INT16:
    return as(int16_t());
  case LTC_DTYPE_INT32:
    return as(int32_t());
  case LTC_DTYPE_INT64:
    return as(int64_t());
  case LTC_DTYPE_FLOAT32:
    return as(float());
  case LTC_DTYPE_FLOAT64:
    return as(double());
  case LTC_DTYPE_FLOAT16:
  case LTC_DTYPE_BFLOAT16: {
    uint16_t bits;
    memcpy(&bits, from, 2);
    const llvm::fltSemantics &semantics =
        dtype == LTC_DTYPE_BFLOAT16 ? APFloat::BFloat() : APFloat::IEEEhalf();
    return APFloat(semantics, APInt(16, bits)).convertToDouble();
  }
  case LTC_DTYPE_COMPLEX64:
  case LTC_DTYPE_COMPLEX128:
    break; // outputs are shown as pairs of floats
  }
  return 0;
}

/// Values of the program's arguments.
struct Arguments {
  std::vector<Bytes> tensors;
  std::vector<LtcScalar> scalars;
};

Bytes constantBytes(DenseElementsAttr elements) {
  Type type = elements.getElementType();
  size_t width = llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
  Bytes bytes(elements.getNumElements() * width);
  char *to = bytes.data();
  if (isa<FloatType>(type)) {
    for (APFloat value : elements.getValues<APFloat>()) {
      APInt bits = value.bitcastToAPInt();
      memcpy(to, bits.getRawData(), width);
      to += width;
    }
  } else {
    for (APInt value : elements.getValues<APInt>()) {
      memcpy(to, value.getRawData(), width);
      to += width;
    }
  }
  return bytes;
}

Arguments makeArguments(func::FuncOp program) {
  Arguments result;
  std::mt19937_64 random(seed);
  for (BlockArgument argument : program.getArguments()) {
    unsigned number = argument.getArgNumber();
    Attribute value = program.getArgAttr(number, "run.value");
    auto tensor = dyn_cast<RankedTensorType>(argument.getType());
    if (!tensor) {
      LtcScalar scalar{};
      if (auto f = dyn_cast_if_present<FloatAttr>(value))
        scalar.as_float = f.getValueAsDouble();
      else if (auto i = dyn_cast_if_present<IntegerAttr>(value))
        scalar.as_int = i.getInt();
      else if (isa<FloatType>(argument.getType()))
        scalar.as_float = 0.5;
      else
        scalar.as_int = 3;
      result.scalars.push_back(scalar);
      continue;
    }
    if (auto elements = dyn_cast_if_present<DenseElementsAttr>(value)) {
      result.tensors.push_back(constantBytes(elements));
      continue;
    }
    double low = -1, high = 1;
    if (tensor.getElementType().isInteger())
      low = 0, high = tensor.getElementType().isInteger(1) ? 2 : 100;
    if (auto range = program.getArgAttrOfType<ArrayAttr>(number, "run.range")) {
      low = cast<FloatAttr>(range[0]).getValueAsDouble();
      high = cast<FloatAttr>(range[1]).getValueAsDouble();
    }
    std::uniform_real_distribution<double> distribution(low, high);
    size_t width = llvm::divideCeil(tensor.getElementTypeBitWidth(), 8);
    Bytes bytes(tensor.getNumElements() * width);
    for (int64_t i = 0; i < tensor.getNumElements(); ++i)
      storeElement(tensor.getElementType(),
                   isa<IntegerType>(tensor.getElementType())
                       ? std::floor(distribution(random))
                       : distribution(random),
                   bytes.data() + i * width);
    result.tensors.push_back(std::move(bytes));
  }
  return result;
}

struct Output {
  LtcOutputInfo info;
  std::vector<int64_t> sizes;
  Bytes bytes;
};

struct LoadedProgram {
  LtcExecutable executable = nullptr;
  ~LoadedProgram() { ltcExecutableDestroy(executable); }
};

torch_ltc::LinalgCompileOptions compileOptions(bool reference) {
  torch_ltc::LinalgCompileOptions options;
  options.programName = "ltc-run";
  options.verify = true;
  options.reference = reference;
  if (!showStage.empty() && !reference)
    options.stageText = [](StringRef stage, StringRef text) {
      if (stage == showStage)
        llvm::outs() << text << "\n";
    };
  return options;
}

void compile(ModuleOp module, bool reference, LoadedProgram &loaded) {
  torch_ltc::LinalgCompileStatistics counts;
  FailureOr<std::string> bytes = torch_ltc::compileLinalgModule(
      module, compileOptions(reference), {}, counts);
  if (failed(bytes))
    fail("the program doesn't compile");
  if (statistics && !reference)
    llvm::outs() << "kernels " << counts.kernels << ", commands "
                 << counts.commands << ", kernels stage "
                 << llvm::format("%.3f", counts.kernelsSeconds)
                 << " s, llvm stage "
                 << llvm::format("%.3f", counts.llvmSeconds) << " s, "
                 << bytes->size() << " bytes\n";
  require(ltcExecutableLoad(bytes->data(), bytes->size(), &loaded.executable));
  if (statistics && !reference)
    llvm::outs() << "arena " << ltcExecutableArenaBytes(loaded.executable)
                 << " bytes\n";
}

/// The value of an expression such as `4*s0+s1` at `sizes`.
int64_t evaluate(StringRef sum, ArrayRef<int64_t> sizes) {
  int64_t result = 0;
  for (StringRef product : llvm::split(sum, '+')) {
    int64_t value = 1, number;
    for (StringRef factor : llvm::split(product, '*')) {
      bool isSize = factor.consume_front("s");
      if (factor.getAsInteger(10, number) ||
          (isSize && size_t(number) >= sizes.size()))
        fail("$(" + sum + ") isn't a sum of products of sizes");
      value *= isSize ? sizes[number] : number;
    }
    result += value;
  }
  return result;
}

/// Replaces each `$(...)` in the text by its value at `sizes`, and parses the
/// program.
OwningOpRef<ModuleOp> parseAt(StringRef text, ArrayRef<int64_t> sizes,
                              MLIRContext &context) {
  std::string result;
  while (true) {
    auto [before, after] = text.split("$(");
    result += before;
    if (after.empty())
      break;
    auto [sum, rest] = after.split(')');
    result += std::to_string(evaluate(sum, sizes));
    text = rest;
  }
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(result, &context);
  if (!module)
    fail("the program can't be parsed");
  return module;
}

/// Compiles a general executable, and binds it to the command line's sizes.
void compileGeneral(StringRef text, MLIRContext &context,
                    LoadedProgram &general, LoadedProgram &bound) {
  SmallVector<OwningOpRef<ModuleOp>> owners;
  SmallVector<ModuleOp> samples;
  SmallVector<torch_ltc::SizeSamples> standIns(boundSizes.size());
  for (unsigned sample = 0; sample < torch_ltc::kNumSamples; ++sample) {
    SmallVector<int64_t> sizes;
    for (unsigned symbol = 0; symbol < standIns.size(); ++symbol) {
      sizes.push_back(ltcSizeStandIn(/*scale=*/0, symbol, sample));
      standIns[symbol][sample] = sizes.back();
    }
    owners.push_back(parseAt(text, sizes, context));
    samples.push_back(*owners.back());
  }
  torch_ltc::LinalgCompileStatistics counts;
  FailureOr<std::string> bytes = torch_ltc::compileGeneralModules(
      samples, {standIns, {}, {}}, compileOptions(/*reference=*/false), counts);
  if (failed(bytes))
    fail("the program doesn't compile");
  require(ltcExecutableLoad(bytes->data(), bytes->size(), &general.executable));
  SmallVector<int64_t> sizes(boundSizes.begin(), boundSizes.end());
  LtcSizes values{sizes.data(), sizes.size(), nullptr, 0};
  require(ltcExecutableBind(general.executable, &values, &bound.executable));
}

/// Runs the program on copies of the arguments, and returns the outputs of the
/// first run. With --time-runs, also prints the fastest of further runs.
std::vector<Output> run(const LoadedProgram &program, Arguments arguments) {
  LtcExecutable executable = program.executable;
  std::vector<void *> parameters, outputs;
  for (Bytes &bytes : arguments.tensors)
    parameters.push_back(bytes.data());
  std::vector<Output> results(ltcExecutableNumOutputs(executable));
  for (auto [index, result] : llvm::enumerate(results)) {
    result.info = ltcExecutableOutput(executable, index);
    result.sizes.assign(result.info.type.sizes,
                        result.info.type.sizes + result.info.type.rank);
    LtcDType &dtype = result.info.type.dtype;
    if (dtype == LTC_DTYPE_COMPLEX64 || dtype == LTC_DTYPE_COMPLEX128) {
      // Shown as pairs of floats.
      result.sizes.push_back(2);
      dtype =
          dtype == LTC_DTYPE_COMPLEX64 ? LTC_DTYPE_FLOAT32 : LTC_DTYPE_FLOAT64;
    }
    result.bytes.resize(result.info.type.bytes);
    outputs.push_back(
        result.info.place == LTC_OUTPUT_CALLER ? result.bytes.data() : nullptr);
  }
  LtcRunArguments run{};
  run.parameters = parameters.data();
  run.scalars = arguments.scalars.data();
  run.outputs = outputs.data();
  run.num_threads = threads;
  require(ltcExecutableRun(executable, &run));
  for (Output &result : results)
    if (result.info.place != LTC_OUTPUT_CALLER)
      memcpy(result.bytes.data(), parameters[result.info.parameter],
             result.bytes.size());
  if (timeRuns > 0) {
    size_t commands = ltcExecutableNumCommands(executable);
    std::vector<int64_t> nanoseconds(commands), best(commands, INT64_MAX);
    double fastest = 1e30;
    for (int i = 0; i < timeRuns; ++i) {
      auto start = std::chrono::steady_clock::now();
      run.command_nanoseconds = nanoseconds.data();
      require(ltcExecutableRun(executable, &run));
      fastest = std::min(fastest, std::chrono::duration<double>(
                                      std::chrono::steady_clock::now() - start)
                                      .count());
      for (size_t c = 0; c < commands; ++c)
        best[c] = std::min(best[c], nanoseconds[c]);
    }
    for (size_t c = 0; c < commands; ++c)
      llvm::outs() << llvm::format("%10.1f us  ", best[c] * 1e-3)
                   << ltcExecutableCommand(executable, c).name << "\n";
    llvm::outs() << llvm::format("%10.1f us  total\n", fastest * 1e6);
  }
  return results;
}

double elementOf(const Output &output, size_t index) {
  size_t count = 1;
  for (int64_t size : output.sizes)
    count *= size;
  size_t width = output.bytes.size() / std::max<size_t>(count, 1);
  return loadElement(output.info.type.dtype,
                     output.bytes.data() + index * width);
}

size_t countOf(const Output &output) {
  size_t count = 1;
  for (int64_t size : output.sizes)
    count *= size;
  return count;
}

void print(ArrayRef<Output> outputs) {
  for (auto [index, output] : llvm::enumerate(outputs)) {
    llvm::outs() << "output " << index << " [";
    llvm::interleaveComma(output.sizes, llvm::outs());
    llvm::outs() << "]";
    if (output.info.place == LTC_OUTPUT_DONATED)
      llvm::outs() << " donated " << output.info.parameter;
    if (output.info.place == LTC_OUTPUT_FORWARDED)
      llvm::outs() << " forwarded " << output.info.parameter;
    llvm::outs() << ":";
    for (size_t i = 0; i < countOf(output); ++i)
      llvm::outs() << llvm::format(" %.6g", elementOf(output, i));
    llvm::outs() << "\n";
  }
}

void compare(ArrayRef<Output> outputs, ArrayRef<Output> expected) {
  for (auto [index, pair] :
       llvm::enumerate(llvm::zip_equal(outputs, expected))) {
    auto &[actual, wanted] = pair;
    for (size_t i = 0; i < countOf(actual); ++i) {
      double a = elementOf(actual, i), b = elementOf(wanted, i);
      bool same = (std::isnan(a) && std::isnan(b)) || a == b ||
                  std::fabs(a - b) <=
                      absoluteTolerance + relativeTolerance * std::fabs(b);
      if (!same)
        fail("output " + Twine(index) + " element " + Twine(i) + " is " +
             std::to_string(a) + ", expected " + std::to_string(b));
    }
  }
  llvm::outs() << outputs.size() << " outputs agree\n";
}

} // namespace

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv,
                              "Runs a module of the linalg stage\n");
  DialectRegistry registry;
  torch_ltc::registerCodegenDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(inputFile, &error);
  if (!file)
    fail(error);
  SmallVector<int64_t> sizes(boundSizes.begin(), boundSizes.end());
  OwningOpRef<ModuleOp> module = parseAt(file->getBuffer(), sizes, context);
  FailureOr<func::FuncOp> program = torch_ltc::findProgram(*module);
  if (failed(program))
    return 1;
  Arguments arguments = makeArguments(*program);
  OwningOpRef<ModuleOp> reference = module->clone();
  LoadedProgram general, loaded;
  if (sizes.empty())
    compile(*module, /*reference=*/false, loaded);
  else
    compileGeneral(file->getBuffer(), context, general, loaded);
  std::vector<Output> outputs = run(loaded, arguments);
  if (!check) {
    if (!timeRuns)
      print(outputs);
    return 0;
  }
  LoadedProgram loadedReference;
  compile(*reference, /*reference=*/true, loadedReference);
  timeRuns = 0;
  compare(outputs, run(loadedReference, arguments));
  return 0;
}
