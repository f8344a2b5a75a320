//===- LibraryCallVerifier.cpp - Shapes and attributes of library calls ---===//

#include "torch_ltc/Dialect/Ltc/LtcDialect.h"

using namespace mlir;
using namespace mlir::torch_ltc::ltc;

namespace {

/// Sizes of the last two dimensions of `type` with the transposition undone.
std::pair<int64_t, int64_t> matrixSizes(RankedTensorType type,
                                        bool transposed) {
  int64_t rows = type.getDimSize(type.getRank() - 2);
  int64_t columns = type.getDimSize(type.getRank() - 1);
  return transposed ? std::pair(columns, rows) : std::pair(rows, columns);
}

LogicalResult verifyMatmul(LibraryCallOp op, RankedTensorType a,
                           RankedTensorType b, RankedTensorType c,
                           RankedTensorType bias) {
  for (RankedTensorType type : {a, b})
    if (type.getRank() < 2 || type.getRank() > c.getRank())
      return op.emitOpError("matmul operand ")
             << type << " has rank " << type.getRank()
             << "; expected 2 or the result's rank " << c.getRank();
  if (c.getRank() > 3 || c.getRank() < 2)
    return op.emitOpError("matmul result must have rank 2 or 3");
  auto [m, ka] = matrixSizes(a, op.isTransposeA());
  auto [kb, n] = matrixSizes(b, op.isTransposeB());
  auto [mc, nc] = matrixSizes(c, false);
  if (m != mc || n != nc || ka != kb)
    return op.emitOpError("matmul sizes don't fit: ")
           << m << "x" << ka << " times " << kb << "x" << n << " into " << mc
           << "x" << nc;
  for (RankedTensorType type : {a, b})
    if (type.getRank() == 3 && type.getDimSize(0) != c.getDimSize(0))
      return op.emitOpError("matmul batch of ")
             << type << " differs from the result's " << c.getDimSize(0);
  if (bias && (bias.getRank() != 1 || bias.getDimSize(0) != n))
    return op.emitOpError("matmul bias must be [") << n << "], got " << bias;
  return success();
}

FailureOr<ArrayRef<int64_t>> spatialList(LibraryCallOp op, StringRef name,
                                         int64_t spatialRank, int64_t minimum) {
  auto attribute = op->getAttrOfType<DenseI64ArrayAttr>(name);
  if (!attribute)
    return op.emitOpError("needs the attribute '") << name << "' (array<i64>)";
  if (attribute.size() != spatialRank)
    return op.emitOpError("'")
           << name << "' has " << attribute.size() << " elements for "
           << spatialRank << " spatial dimensions";
  for (int64_t value : attribute.asArrayRef())
    if (value < minimum)
      return op.emitOpError("'")
             << name << "' must be at least " << minimum << ", got " << value;
  return attribute.asArrayRef();
}

LogicalResult verifyConvolution(LibraryCallOp op, RankedTensorType input,
                                RankedTensorType weight,
                                RankedTensorType output,
                                RankedTensorType bias) {
  int64_t rank = input.getRank(), spatialRank = rank - 2;
  if (spatialRank < 1 || spatialRank > 3 || weight.getRank() != rank ||
      output.getRank() != rank)
    return op.emitOpError("convolution of ")
           << input << " and " << weight << " into " << output
           << ": expected 1 to 3 spatial dimensions and equal ranks";
  auto stride = spatialList(op, "stride", spatialRank, 1);
  auto padding = spatialList(op, "padding", spatialRank, 0);
  auto dilation = spatialList(op, "dilation", spatialRank, 1);
  if (failed(stride) || failed(padding) || failed(dilation))
    return failure();
  auto groups = op->getAttrOfType<IntegerAttr>("groups");
  if (!groups || groups.getInt() < 1)
    return op.emitOpError("needs a positive integer attribute 'groups'");
  int64_t g = groups.getInt(), outputChannels = weight.getDimSize(0);
  if (input.getDimSize(1) != weight.getDimSize(1) * g ||
      outputChannels % g != 0 || output.getDimSize(1) != outputChannels ||
      output.getDimSize(0) != input.getDimSize(0))
    return op.emitOpError("convolution channels or batch don't fit: input ")
           << input << ", weight " << weight << ", output " << output
           << ", groups " << g;
  for (int64_t i = 0; i < spatialRank; ++i) {
    int64_t extent = (*dilation)[i] * (weight.getDimSize(i + 2) - 1) + 1;
    int64_t room = input.getDimSize(i + 2) + 2 * (*padding)[i] - extent;
    if (room < 0)
      return op.emitOpError("convolution window of dimension ")
             << i + 2 << " is larger than the padded input";
    int64_t size = room / (*stride)[i] + 1;
    if (output.getDimSize(i + 2) != size)
      return op.emitOpError("convolution output dimension ")
             << i + 2 << " must be " << size << ", got "
             << output.getDimSize(i + 2);
  }
  if (bias && (bias.getRank() != 1 || bias.getDimSize(0) != outputChannels))
    return op.emitOpError("convolution bias must be [")
           << outputChannels << "], got " << bias;
  return success();
}

LogicalResult verifyAttention(LibraryCallOp op, ArrayRef<RankedTensorType> in,
                              ArrayRef<RankedTensorType> out) {
  bool isBackward = op.getName() == kAttentionBackwardName;
  if (!isBackward && op.getName() != kAttentionName)
    return op.emitOpError("unknown library function '") << op.getName() << "'";
  size_t first = isBackward, required = isBackward ? 6 : 3;
  if (in.size() < required || in.size() > required + 1 ||
      out.size() != (isBackward ? 3 : 2))
    return op.emitOpError("wrong number of operands or results for '")
           << op.getName() << "'";
  for (RankedTensorType type : llvm::concat<const RankedTensorType>(in, out))
    if (!type.getElementType().isF32())
      return op.emitOpError("attention is computed in f32, got ") << type;
  RankedTensorType query = in[first], key = in[first + 1],
                   value = in[first + 2];
  auto fail = [&](RankedTensorType type) {
    return op.emitOpError("attention of ")
           << query << ", " << key << " and " << value << " has no " << type;
  };
  for (RankedTensorType type : {query, key, value})
    if (type.getRank() != 4 ||
        type.getShape().take_front(2) != query.getShape().take_front(2))
      return fail(type);
  int64_t length = query.getDimSize(2), keys = key.getDimSize(2);
  if (key.getDimSize(3) != query.getDimSize(3))
    return fail(key);
  if (value.getDimSize(2) != keys)
    return fail(value);
  SmallVector<int64_t> output(query.getShape());
  output.back() = value.getDimSize(3);
  ArrayRef<int64_t> logSum = query.getShape().drop_back();
  SmallVector<std::pair<RankedTensorType, ArrayRef<int64_t>>> expected;
  if (isBackward)
    expected = {{in[0], output},          {in[4], output},
                {in[5], logSum},          {out[0], query.getShape()},
                {out[1], key.getShape()}, {out[2], value.getShape()}};
  else
    expected = {{out[0], output}, {out[1], logSum}};
  for (auto [type, sizes] : expected)
    if (type.getShape() != sizes)
      return fail(type);
  if (in.size() == required)
    return success();
  RankedTensorType mask = in.back();
  if (mask.getRank() != 4 || mask.getDimSize(3) != keys)
    return fail(mask);
  for (auto [size, full] :
       llvm::zip(mask.getShape(),
                 ArrayRef{query.getDimSize(0), query.getDimSize(1), length}))
    if (size != 1 && size != full)
      return fail(mask);
  return success();
}

LogicalResult verifyHost(LibraryCallOp op) {
  auto name = op->getAttrOfType<StringAttr>("op");
  auto arguments = op->getAttrOfType<ArrayAttr>("arguments");
  auto results = op->getAttrOfType<ArrayAttr>("results");
  if (!name || !arguments || !results)
    return op.emitOpError("of the host needs the attributes 'op', 'arguments' "
                          "and 'results'");
  SmallVector<Attribute> types;
  for (Attribute argument : arguments) {
    if (isa<TypeAttr>(argument))
      types.push_back(argument);
    else if (auto list = dyn_cast<ArrayAttr>(argument))
      llvm::append_range(types, list);
    else if (!isa<UnitAttr, IntegerAttr, FloatAttr, StringAttr,
                  DenseI64ArrayAttr, DenseF64ArrayAttr>(argument))
      return op.emitOpError("has an argument of an unknown kind: ") << argument;
  }
  auto fit = [](ArrayRef<Attribute> dtypes, TypeRange tensors) {
    return dtypes.size() == tensors.size() &&
           llvm::all_of(llvm::zip_equal(dtypes, tensors), [](auto pair) {
             auto [attribute, tensor] = pair;
             auto dtype = dyn_cast<TypeAttr>(attribute);
             return dtype && dtype.getValue().isIntOrFloat() &&
                    dtype.getValue().getIntOrFloatBitWidth() ==
                        getElementTypeOrSelf(tensor).getIntOrFloatBitWidth();
           });
  };
  if (!fit(types, op.getArguments().getTypes()) ||
      !fit(results.getValue(), op.getOutputs().getTypes()))
    return op.emitOpError("has other dtypes in its attributes than tensors");
  return success();
}

} // namespace

LogicalResult LibraryCallOp::verify() {
  SmallVector<RankedTensorType> in, out;
  for (Type type : getArguments().getTypes())
    in.push_back(dyn_cast<RankedTensorType>(type));
  for (Type type : getOutputs().getTypes())
    out.push_back(dyn_cast<RankedTensorType>(type));
  if (llvm::is_contained(in, nullptr) || llvm::is_contained(out, nullptr))
    return emitOpError("needs ranked tensors");
  if (isHost())
    return verifyHost(*this);
  if (isAttention())
    return verifyAttention(*this, in, out);
  bool biasOperand = isMatmul() || getName() == kConvolutionForwardName;
  bool biasResult = getName() == kConvolutionBackwardWeightName;
  if (!isMatmul() && !isConvolution())
    return emitOpError("unknown library function '") << getName() << "'";
  if (in.size() < 2 || in.size() > (biasOperand ? 3u : 2u) || out.empty() ||
      out.size() > (biasResult ? 2u : 1u))
    return emitOpError("wrong number of operands or results for '")
           << getName() << "'";
  Type element = in[0].getElementType();
  for (RankedTensorType type : llvm::concat<RankedTensorType>(in, out))
    if (type.getElementType() != element)
      return emitOpError("mixes element types ")
             << element << " and " << type.getElementType();
  RankedTensorType bias = in.size() == 3    ? in[2]
                          : out.size() == 2 ? out[1]
                                            : RankedTensorType();
  if (isMatmul())
    return verifyMatmul(*this, in[0], in[1], out[0], bias);
  if (getName() == kConvolutionForwardName)
    return verifyConvolution(*this, in[0], in[1], out[0], bias);
  if (getName() == kConvolutionBackwardInputName)
    return verifyConvolution(*this, out[0], in[1], in[0], bias);
  if (getName() == kConvolutionBackwardWeightName)
    return verifyConvolution(*this, in[1], out[0], in[0], bias);
  return emitOpError("unknown library function '") << getName() << "'";
}
