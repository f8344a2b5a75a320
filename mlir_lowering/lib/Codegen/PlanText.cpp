//===- PlanText.cpp - Commands and buffers of a program as JSON -----------===//

#include "PlanText.h"
#include "SourceNames.h"

#include "torch_ltc/Dialect/Ltc/Collectives.h"
#include "torch_ltc/Kernels/Program.h"

#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::torch_ltc;

namespace {

class PlanWriter {
public:
  PlanWriter(func::FuncOp program, const BufferPlan &plan,
             llvm::raw_ostream &stream)
      : program(program), plan(plan), json(stream, /*IndentSize=*/1),
        lives(plan.buffers.size()) {}

  void run() {
    json.object([&] {
      json.attribute("arena_bytes", plan.arenaBytes);
      json.attributeArray("commands", [&] {
        for (Operation &op : program.getBody().front())
          if (getRole(&op) == OpRole::Call)
            writeCommand(&op);
      });
      json.attributeArray("buffers", [&] {
        for (auto [index, buffer] : llvm::enumerate(plan.buffers))
          writeBuffer(buffer, lives[index]);
      });
      json.attributeArray("outputs", [&] {
        for (const PlannedOutput &output : plan.outputs)
          json.object([&] { writePart(output.part); });
      });
    });
  }

private:
  /// The first command that writes a buffer and the last that uses it.
  struct Life {
    std::optional<int64_t> first;
    int64_t last = 0;
  };

  void writePart(BufferPart part) {
    json.attribute("buffer", part.buffer);
    json.attribute("offset", part.offset);
  }

  template <typename Strings>
  void writeStrings(StringRef key, const Strings &strings) {
    json.attributeArray(key, [&] {
      for (const auto &string : strings)
        json.value(llvm::json::fixUTF8(string)); // paths may contain any bytes
    });
  }

  void writeCommand(Operation *op) {
    json.object([&] {
      json.attribute("op", op->getName().stripDialect());
      if (auto call = dyn_cast<ltc::KernelCallOp>(op))
        json.attribute("callee", call.getCallee());
      else if (auto call = dyn_cast<ltc::HostCallOp>(op))
        json.attribute("callee", call.getCallee());
      else if (auto join = dyn_cast<ltc::JoinOp>(op))
        json.attribute("copies", int64_t(plan.getCopiedParts(join).size()));
      writeCollective(op);
      SourceNames names = getSourceNames(op->getLoc());
      writeStrings("ops", names.ops);
      writeStrings("modules", names.modules);
      writeStrings("lines", names.lines);
      json.attributeArray("operands", [&] {
        for (Value operand : op->getOperands()) {
          BufferPart part = plan.parts.at(operand);
          lives[part.buffer].last = number;
          json.object([&] { writePart(part); });
        }
      });
      json.attributeArray("results", [&] {
        if (!isa<ltc::CheckBoundsOp>(op)) // a check's result is its operand
          for (Value result : op->getResults())
            writeResult(result);
      });
    });
    ++number;
  }

  void writeCollective(Operation *op) {
    StringRef kind = getKindOfCommand(op);
    if (kind.empty())
      return;
    json.attribute("collective", kind);
    numbers[op] = number;
    if (ltc::HostCallOp start = getStartOf(op))
      json.attribute("started_by", numbers.lookup(start));
  }

  void writeResult(Value result) {
    BufferPart part = plan.parts.at(result);
    Life &life = lives[part.buffer];
    life.last = number;
    if (!life.first)
      life.first = number;
    std::string type;
    llvm::raw_string_ostream stream(type);
    auto tensor = cast<RankedTensorType>(result.getType());
    for (int64_t size : tensor.getShape())
      stream << size << 'x';
    stream << tensor.getElementType();
    json.object([&] {
      json.attribute("type", type);
      json.attribute("bytes", getTensorBytes(tensor));
      writePart(part);
    });
  }

  void writeBuffer(const PlannedBuffer &buffer, Life life) {
    using Place = PlannedBuffer::Place;
    json.object([&] {
      switch (buffer.place) {
      case Place::Parameter:
        json.attribute("place", "parameter");
        break;
      case Place::Scalar:
        json.attribute("place", "scalar");
        break;
      case Place::Constant:
        json.attribute("place", "constant");
        break;
      case Place::Output:
        json.attribute("place", "output");
        life.last = number;
        break;
      case Place::Arena:
        json.attribute("place", "arena");
        json.attribute("offset", buffer.arenaOffset);
        life = {buffer.first, buffer.last};
        break;
      }
      if (buffer.place != Place::Arena)
        json.attribute("index", buffer.index);
      json.attribute("bytes", buffer.bytes);
      if (life.first || buffer.place == Place::Output) {
        json.attribute("first", life.first.value_or(number));
        json.attribute("last", life.last);
      }
    });
  }

  func::FuncOp program;
  const BufferPlan &plan;
  llvm::json::OStream json;
  SmallVector<Life> lives;                ///< by buffer
  int64_t number = 0;                     ///< of the current command
  DenseMap<Operation *, int64_t> numbers; ///< of collectives
};

} // namespace

std::string torch_ltc::planText(func::FuncOp program, const BufferPlan &plan) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  PlanWriter(program, plan, stream).run();
  return text;
}
