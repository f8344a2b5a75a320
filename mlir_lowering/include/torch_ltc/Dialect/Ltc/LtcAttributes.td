//===- LtcAttributes.td - Schedules and places -------------*- tablegen -*-===//

#ifndef TORCH_LTC_DIALECT_LTC_LTCATTRIBUTES_TD
#define TORCH_LTC_DIALECT_LTC_LTCATTRIBUTES_TD

include "torch_ltc/Dialect/Ltc/LtcBase.td"

include "mlir/IR/AttrTypeBase.td"

class Ltc_Attr<string name, string attrMnemonic> : AttrDef<Ltc_Dialect, name> {
  let mnemonic = attrMnemonic;
}

/// A list that is printed as `[a, b]`; may be empty.
class Ltc_List<string element> : ArrayRefParameter<element> {
  let parser = "parseList<" # element # ">($_parser)";
  let printer = "printList($_printer, $_self)";
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

def Ltc_AxisAttr : Ltc_Attr<"Axis", "axis"> {
  let summary = "adjacent factors of a fusion domain that form one loop";
  let parameters = (ins Ltc_List<"unsigned">:$factors, "int64_t":$size);
  let assemblyFormat = "`<` $factors `:` $size `>`";
}

def Ltc_NestAttr : Ltc_Attr<"Nest", "nest"> {
  let summary = "loops and the members whose results they store";
  let parameters = (ins Ltc_List<"unsigned">:$axes,
                        Ltc_List<"unsigned">:$unrolled,
                        Ltc_List<"unsigned">:$members);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Ltc_ScheduleAttr : Ltc_Attr<"Schedule", "schedule"> {
  let summary = "the loops of a kernel";
  let description = [{
    Written by `ltc-mlir-schedule-kernels` and read by all later passes. An axis
    is identified by its index in `axes`, a member (a `linalg.generic` of the
    kernel) by its position in the kernel, and a factor by its index in the
    kernel's fusion domain.

    * `axes`: the loops, outermost first, each a range of factors with its size;
    * `outer`: the axes that the kernel's iterations run over, besides `split`,
      the axis that is split into blocks of `block` elements;
    * `tile`: the axis along which transposed operands are contiguous;
    * `stored`: the members whose results are stored; others are computed on
      demand;
    * `nests`: the loops inside an iteration, in order;
    * `iterations`: the number of the kernel's iterations; `grain`: the smallest
      number of iterations for which waking a thread pays off, 0 if the kernel
      runs on one thread.

    Softmax over the rows of a 512x128 matrix:

    ```mlir
    #ltc.schedule<axes = [<[0] : 512>, <[1] : 128>], outer = [0],
      stored = [0, 2, 3, 4], nests = [
        <axes = [1], unrolled = [], members = [0]>,
        <axes = [1], unrolled = [], members = [2, 3]>,
        <axes = [1], unrolled = [], members = [4]>],
      iterations = 512, grain = 27>
    ```
  }];
  let parameters = (ins
      Ltc_List<"AxisAttr">:$axes, Ltc_List<"unsigned">:$outer,
      OptionalParameter<"::std::optional<unsigned>">:$split,
      DefaultValuedParameter<"int64_t", "0">:$block,
      OptionalParameter<"::std::optional<unsigned>">:$tile,
      Ltc_List<"unsigned">:$stored, Ltc_List<"NestAttr">:$nests,
      "int64_t":$iterations, "int64_t":$grain);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

def Ltc_PlaceAttr : Ltc_Attr<"Place", "place"> {
  let summary = "the place of a result";
  let description = [{
    Written by `ltc-mlir-plan-buffers` for each result of a command and of the
    program. `number` is the index of an argument or a result of the program, or
    the byte offset of a range of the arena. A range of the arena has `bytes`
    bytes and is used from command `first` to command `last`; if `last` equals
    the number of commands, it is used until the end of the program. `part` is
    the result's byte offset in the place.

    ```mlir
    #ltc.place<parameter 3>
    #ltc.place<output 0>
    #ltc.place<arena 4096 + 128, bytes = 1024, live = 3 to 7>
    ```
  }];
  let parameters = (ins "PlaceKind":$kind, "int64_t":$number, "int64_t":$part,
                        "int64_t":$bytes, "int64_t":$first, "int64_t":$last);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    static PlaceAttr getParameter(::mlir::MLIRContext *context, int64_t argument,
                                  int64_t part = 0) {
      return get(context, PlaceKind::Parameter, argument, part, 0, 0, 0);
    }
    static PlaceAttr getOutput(::mlir::MLIRContext *context, int64_t result,
                               int64_t part = 0) {
      return get(context, PlaceKind::Output, result, part, 0, 0, 0);
    }
    static PlaceAttr getArena(::mlir::MLIRContext *context, int64_t offset,
                              int64_t part, int64_t bytes, int64_t first,
                              int64_t last) {
      return get(context, PlaceKind::Arena, offset, part, bytes, first, last);
    }
    bool isParameter() const { return getKind() == PlaceKind::Parameter; }
    bool isOutput() const { return getKind() == PlaceKind::Output; }
    bool isArena() const { return getKind() == PlaceKind::Arena; }
    /// This place with part 0.
    PlaceAttr getWhole() const {
      return get(getContext(), getKind(), getNumber(), 0, getBytes(), getFirst(),
                 getLast());
    }
  }];
}

#endif // TORCH_LTC_DIALECT_LTC_LTCATTRIBUTES_TD
