//===- LibraryOps.cpp - Verifiers of library calls ------------------------===//

#include "torch_ltc/Dialect/Ltc/Collectives.h"

using namespace mlir;
using namespace mlir::torch_ltc;
using namespace mlir::torch_ltc::ltc;

#include "torch_ltc/Dialect/Ltc/LtcInterfaces.cpp.inc"

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Verifies that a bias has the sizes [`channels`] and the operands' element
/// type. `bias` may be null.
static LogicalResult verifyBias(Operation *op, Value bias, int64_t channels,
                                Type element) {
  if (!bias)
    return success();
  auto expected = RankedTensorType::get({channels}, element);
  if (bias.getType() == expected)
    return success();
  return op->emitOpError("bias must be ")
         << expected << ", got " << bias.getType();
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

/// The rows and columns of an operand's matrices, after their transposition.
static std::pair<int64_t, int64_t> matrixSizes(RankedTensorType type,
                                               bool transposed) {
  int64_t rows = type.getDimSize(type.getRank() - 2);
  int64_t columns = type.getDimSize(type.getRank() - 1);
  return transposed ? std::pair(columns, rows) : std::pair(rows, columns);
}

LogicalResult MatmulOp::verify() {
  RankedTensorType a = typeOf(getA()), b = typeOf(getB()), c = typeOf(getC());
  for (RankedTensorType type : {a, b}) {
    if (type.getRank() > c.getRank())
      return emitOpError("operand ")
             << type << " has rank " << type.getRank()
             << "; expected 2 or the result's rank " << c.getRank();
    if (type.getRank() == 3 && type.getDimSize(0) != c.getDimSize(0))
      return emitOpError("batch of ")
             << type << " differs from the result's " << c.getDimSize(0);
  }
  auto [m, ka] = matrixSizes(a, getTransposeA());
  auto [kb, n] = matrixSizes(b, getTransposeB());
  auto [mc, nc] = matrixSizes(c, false);
  if (m != mc || n != nc || ka != kb)
    return emitOpError("sizes don't fit: ")
           << m << "x" << ka << " times " << kb << "x" << n << " into " << mc
           << "x" << nc;
  return verifyBias(*this, getBias(), n, c.getElementType());
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

static LogicalResult verifyWindow(ConvolutionOpInterface op, unsigned i) {
  RankedTensorType input = typeOf(op.getInput()),
                   output = typeOf(op.getOutput());
  int64_t taps = typeOf(op.getWeight()).getDimSize(i + 2);
  int64_t extent = op.getDilation()[i] * (taps - 1) + 1;
  int64_t room = input.getDimSize(i + 2) + 2 * op.getPadding()[i] - extent;
  if (room < 0)
    return op->emitOpError("window of dimension ")
           << i + 2 << " is larger than the padded input";
  int64_t size = room / op.getStride()[i] + 1;
  if (output.getDimSize(i + 2) != size)
    return op->emitOpError("output dimension ")
           << i + 2 << " must be " << size << ", got "
           << output.getDimSize(i + 2);
  return success();
}

LogicalResult ltc::detail::verifyConvolution(Operation *operation) {
  auto op = cast<ConvolutionOpInterface>(operation);
  RankedTensorType input = typeOf(op.getInput()),
                   weight = typeOf(op.getWeight()),
                   output = typeOf(op.getOutput());
  for (RankedTensorType type : {weight, output}) {
    if (type.getElementType() != input.getElementType())
      return op->emitOpError("mixes element types ")
             << input.getElementType() << " and " << type.getElementType();
    if (type.getRank() != input.getRank())
      return op->emitOpError("mixes ranks: input ")
             << input << ", weight " << weight << ", output " << output;
  }
  size_t spatialRank = input.getRank() - 2;
  for (auto [name, list] : {std::pair("stride", op.getStride()),
                            std::pair("padding", op.getPadding()),
                            std::pair("dilation", op.getDilation())})
    if (list.size() != spatialRank)
      return op->emitOpError("'")
             << name << "' has " << list.size() << " elements for "
             << spatialRank << " spatial dimensions";
  int64_t groups = op.getGroups(), channels = weight.getDimSize(0);
  if (input.getDimSize(1) != weight.getDimSize(1) * groups ||
      channels % groups != 0 || output.getDimSize(1) != channels ||
      output.getDimSize(0) != input.getDimSize(0))
    return op->emitOpError("channels or batch don't match: input ")
           << input << ", weight " << weight << ", output " << output
           << ", groups " << groups;
  for (unsigned i = 0; i < spatialRank; ++i)
    if (failed(verifyWindow(op, i)))
      return failure();
  return verifyBias(op, op.getBias(), channels, input.getElementType());
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

static LogicalResult verifyShape(Operation *op, StringRef name, Value value,
                                 ArrayRef<int64_t> sizes) {
  auto expected = RankedTensorType::get(sizes, typeOf(value).getElementType());
  if (value.getType() == expected)
    return success();
  return op->emitOpError("")
         << name << " must be " << expected << ", got " << value.getType();
}

LogicalResult ltc::detail::verifyAttention(Operation *operation) {
  auto op = cast<AttentionOpInterface>(operation);
  ArrayRef<int64_t> query = typeOf(op.getQuery()).getShape();
  int64_t keys = typeOf(op.getKey()).getDimSize(2);
  int64_t outputs = typeOf(op.getValue()).getDimSize(3);
  if (failed(verifyShape(op, "key", op.getKey(),
                         {query[0], query[1], keys, query[3]})) ||
      failed(verifyShape(op, "value", op.getValue(),
                         {query[0], query[1], keys, outputs})) ||
      failed(verifyShape(op, "output", op.getOutput(),
                         {query[0], query[1], query[2], outputs})) ||
      failed(verifyShape(op, "log_sum", op.getLogSum(), query.drop_back())))
    return failure();
  if (!op.getMask())
    return success();
  RankedTensorType mask = typeOf(op.getMask());
  bool fits = mask.getDimSize(3) == keys;
  for (auto [size, full] : llvm::zip(mask.getShape(), query.take_front(3)))
    fits &= size == 1 || size == full;
  if (fits)
    return success();
  return op->emitOpError("mask ")
         << mask << " can't be broadcast to "
         << RankedTensorType::get({query[0], query[1], query[2], keys},
                                  mask.getElementType());
}

LogicalResult AttentionBackwardOp::verify() {
  auto shapeOf = [](Value value) { return typeOf(value).getShape(); };
  if (failed(verifyShape(*this, "grad_output", getGradOutput(),
                         shapeOf(getOutput()))) ||
      failed(verifyShape(*this, "grad_query", getGradQuery(),
                         shapeOf(getQuery()))) ||
      failed(verifyShape(*this, "grad_key", getGradKey(), shapeOf(getKey()))))
    return failure();
  return verifyShape(*this, "grad_value", getGradValue(), shapeOf(getValue()));
}

//===----------------------------------------------------------------------===//
// PyTorch's kernels
//===----------------------------------------------------------------------===//

void HostCallOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  // Other ranks wait for these calls, and use the exchanged memory until
  // `finish` has run, so the calls must not be removed or reordered.
  if (getCallee() == collective::kBegin || getCallee() == collective::kFinish)
    effects.emplace_back(MemoryEffects::Write::get());
}

SmallVector<Type> HostCallOp::getInputDtypes() {
  SmallVector<Type> dtypes;
  for (Attribute argument : getArguments()) {
    if (auto tensor = dyn_cast<TypeAttr>(argument))
      dtypes.push_back(tensor.getValue());
    else if (auto list = dyn_cast<ArrayAttr>(argument))
      for (auto element :
           llvm::make_filter_range(list, llvm::IsaPred<TypeAttr>))
        dtypes.push_back(cast<TypeAttr>(element).getValue());
  }
  return dtypes;
}

/// Whether the tensor's elements have the dtype's width. The types themselves
/// may differ, because builtin types have no signedness. A tensor of complex
/// numbers has an additional last dim for the real and the imaginary part.
static bool hasDtype(RankedTensorType tensor, Type dtype) {
  if (auto complex = dyn_cast<ComplexType>(dtype))
    return tensor.getRank() > 0 && tensor.getShape().back() == 2 &&
           tensor.getElementType() == complex.getElementType();
  return dtype.isIntOrFloat() &&
         dtype.getIntOrFloatBitWidth() ==
             tensor.getElementType().getIntOrFloatBitWidth();
}

static bool haveDtypes(TypeRange tensors, ArrayRef<Type> dtypes) {
  return tensors.size() == dtypes.size() &&
         llvm::all_of(llvm::zip_equal(tensors, dtypes), [](auto pair) {
           auto [tensor, dtype] = pair;
           return hasDtype(cast<RankedTensorType>(tensor), dtype);
         });
}

LogicalResult HostCallOp::verify() {
  for (Attribute argument : getArguments()) {
    auto list = dyn_cast<ArrayAttr>(argument);
    if (list ? !llvm::all_of(list, llvm::IsaPred<TypeAttr, UnitAttr>)
             : !isa<UnitAttr, IntegerAttr, FloatAttr, StringAttr, TypeAttr,
                    DenseI64ArrayAttr, DenseF64ArrayAttr>(argument))
      return emitOpError("has an argument of an unknown kind: ") << argument;
  }
  auto results = llvm::to_vector(getResultDtypes().getAsValueRange<TypeAttr>());
  if (!haveDtypes(getInputs().getTypes(), getInputDtypes()) ||
      !haveDtypes(getOutputs().getTypes(), results))
    return emitOpError(
        "has dtypes in its attributes that differ from its tensors'");
  return success();
}
