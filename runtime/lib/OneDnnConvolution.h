//===- OneDnnConvolution.h - Convolutions by oneDNN -----------------------===//

#ifndef TORCH_LTC_RUNTIME_ONEDNNCONVOLUTION_H
#define TORCH_LTC_RUNTIME_ONEDNNCONVOLUTION_H

#include "ConvolutionGeometry.h"
#include "PreparedCommand.h"

namespace torch_ltc::runtime {

/// Returns null if oneDNN has no fast implementation of the call on this CPU.
/// No tensor may be empty.
PreparedCommandPtr prepareOneDnnConvolution(const ConvolutionCall &call,
                                            const ConvolutionGeometry &geometry,
                                            int numThreads);

} // namespace torch_ltc::runtime

#endif // TORCH_LTC_RUNTIME_ONEDNNCONVOLUTION_H
