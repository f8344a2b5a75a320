//===- executable_bindings.cpp - Compiled modules that run on CPU tensors -===//
//
// The modules aren't steps of device lazy: they come from another compiler, a
// saved program, or torch.compile.
//
//===----------------------------------------------------------------------===//

#include "bindings.h"
#include "released_gil.h"
#include "traced_program.h"

#include "compilation/compiler_library.h"
#include "compilation/general_maker.h"
#include "programs/program.h"

#include <ATen/Parallel.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <cstring>
#include <stdexcept>

namespace py = pybind11;
using namespace torch_ltc;

namespace {

void check(LtcStatus status) {
  try {
    throwIfFailed(status);
  } catch (const std::runtime_error &error) {
    TORCH_CHECK(false, error.what());
  }
}

class Executable {
public:
  explicit Executable(const LtcBytes &bytes) {
    check(ltcExecutableLoad(bytes.data, bytes.size, &handle));
  }
  /// Takes ownership of `handle`.
  explicit Executable(LtcExecutable handle) : handle(handle) {}
  ~Executable() { ltcExecutableDestroy(handle); }
  Executable(const Executable &) = delete;

  std::vector<LtcTensorInfo> inputs() const {
    std::vector<LtcTensorInfo> result;
    for (size_t i = 0; i < ltcExecutableNumParameters(handle); ++i)
      result.push_back(ltcExecutableParameter(handle, i));
    return result;
  }

  std::vector<LtcTensorInfo> outputs() const {
    std::vector<LtcTensorInfo> result;
    for (size_t i = 0; i < ltcExecutableNumOutputs(handle); ++i)
      result.push_back(ltcExecutableOutput(handle, i).type);
    return result;
  }

  size_t numScalars() const { return ltcExecutableNumScalars(handle); }
  bool isFloat(size_t scalar) const {
    return ltcExecutableScalarIsFloat(handle, scalar);
  }

  /// Converts each number to the type of the program's scalar.
  std::vector<LtcScalar> toScalars(const py::list &values) const {
    TORCH_CHECK(values.size() == numScalars(), "The program takes ",
                numScalars(), " scalars, but got ", values.size(), ".");
    std::vector<LtcScalar> result(values.size());
    for (size_t i = 0; i < values.size(); ++i)
      if (isFloat(i))
        result[i].as_float = values[i].cast<double>();
      else
        result[i].as_int = values[i].cast<int64_t>();
    return result;
  }

  void run(const std::vector<at::Tensor> &arguments,
           const std::vector<LtcScalar> &scalars,
           const std::vector<at::Tensor> &results) const {
    std::vector<void *> parameters = pointers("input", inputs(), arguments);
    std::vector<void *> memory = pointers("output", outputs(), results);
    LtcRunArguments run{};
    run.parameters = parameters.data();
    run.scalars = scalars.data();
    run.outputs = memory.data();
    run.num_threads = at::get_num_threads();
    check(ltcExecutableRun(handle, &run));
    for (size_t i = 0; i < memory.size(); ++i) {
      LtcOutputInfo info = ltcExecutableOutput(handle, i);
      if (info.place != LTC_OUTPUT_CALLER)
        std::memcpy(memory[i], parameters[info.parameter], info.type.bytes);
    }
  }

private:
  static std::vector<void *> pointers(const char *role,
                                      const std::vector<LtcTensorInfo> &infos,
                                      const std::vector<at::Tensor> &tensors) {
    TORCH_CHECK(tensors.size() == infos.size(), "The program has ",
                infos.size(), " ", role, "s, but got ", tensors.size(), ".");
    std::vector<void *> result;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const at::Tensor &tensor = tensors[i];
      c10::ArrayRef<int64_t> sizes(infos[i].sizes, infos[i].rank);
      TORCH_CHECK(tensor.device().is_cpu() && tensor.is_contiguous() &&
                      tensor.sizes() == sizes &&
                      toLtcDType(tensor.scalar_type()) == infos[i].dtype,
                  "For ", role, " ", i, " the program needs a contiguous CPU ",
                  "tensor with the declared dtype and sizes ", sizes,
                  ", but got sizes ", tensor.sizes(), " and dtype ",
                  tensor.scalar_type(), " on ", tensor.device(), ".");
      result.push_back(tensor.data_ptr());
    }
    return result;
  }

  LtcExecutable handle = nullptr;
};

std::string dtypeName(LtcDType type) {
  for (auto scalar :
       {c10::kBool, c10::kByte, c10::kChar, c10::kShort, c10::kInt, c10::kLong,
        c10::kHalf, c10::kBFloat16, c10::kFloat, c10::kDouble,
        c10::kComplexFloat, c10::kComplexDouble})
    if (toLtcDType(scalar) == type)
      return pythonDType(scalar);
  return "unknown";
}

py::list rows(const std::vector<LtcTensorInfo> &infos) {
  py::list result;
  for (const LtcTensorInfo &info : infos) {
    py::dict row;
    row["name"] = info.name;
    row["dtype"] = dtypeName(info.dtype);
    row["sizes"] = std::vector<int64_t>(info.sizes, info.sizes + info.rank);
    result.append(std::move(row));
  }
  return result;
}

/// Returns "float" or "int" for each scalar of the program.
py::list scalarTypes(const Executable &executable) {
  py::list result;
  for (size_t i = 0; i < executable.numScalars(); ++i)
    result.append(executable.isFloat(i) ? "float" : "int");
  return result;
}

std::unique_ptr<Executable> compileModule(const py::bytes &module) {
  std::string text = module;
  ReleasedGil noGil;
  const CompilerLibrary *library = nullptr;
  try {
    library = &compilerLibrary();
  } catch (const std::runtime_error &error) {
    TORCH_CHECK(false, error.what());
  }
  LtcBytes bytes{};
  check(library->ltcModuleCompile(library->compiler, text.data(), text.size(),
                                  nullptr, &bytes, nullptr));
  std::shared_ptr<void> release(nullptr,
                                [&](void *) { ltcBytesDestroy(bytes); });
  return std::make_unique<Executable>(bytes);
}

std::unique_ptr<Executable> bindExecutable(const TracedProgram &program) {
  LtcExecutable bound = nullptr;
  try {
    bound = bindApart(program.graph);
  } catch (const std::runtime_error &error) {
    TORCH_CHECK(false, error.what());
  }
  return bound ? std::make_unique<Executable>(bound) : nullptr;
}

} // namespace

void torch_ltc::bindExecutables(py::module_ &module) {
  py::class_<Executable>(module, "Executable")
      .def("inputs", [](const Executable &e) { return rows(e.inputs()); })
      .def("outputs", [](const Executable &e) { return rows(e.outputs()); })
      .def("scalars", &scalarTypes)
      .def("run",
           [](const Executable &e, const std::vector<at::Tensor> &arguments,
              const py::list &scalars, const std::vector<at::Tensor> &results) {
             std::vector<LtcScalar> values = e.toScalars(scalars);
             ReleasedGil noGil;
             e.run(arguments, values, results);
           });
  module.def("compile_module", &compileModule);
  module.def("bind_executable", &bindExecutable, py::call_guard<ReleasedGil>());
}
