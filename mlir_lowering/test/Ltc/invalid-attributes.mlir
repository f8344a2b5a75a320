// RUN: ltc-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{expected parameter, output or arena}}
module attributes {place = #ltc.place<heap 3>} {}

// -----

// expected-error @+1 {{expected 'bytes'}}
module attributes {place = #ltc.place<arena 64, live = 0 to 1>} {}

// -----

// expected-error @+1 {{axis 1 of 1}}
module attributes {s = #ltc.schedule<axes = [<[0] : 64>], outer = [1], stored = [], nests = [], iterations = 1, grain = 0>} {}

// -----

// expected-error @+1 {{a split axis must have blocks of at least one element}}
module attributes {s = #ltc.schedule<axes = [<[0] : 64>], outer = [], split = 0, stored = [], nests = [], iterations = 1, grain = 0>} {}

// -----

// expected-error @+1 {{iterations and grain can't be negative}}
module attributes {s = #ltc.schedule<axes = [<[0] : 64>], outer = [], stored = [], nests = [], iterations = -1, grain = 0>} {}

// -----

// expected-error @+1 {{the nests store members that differ from those in 'stored'}}
module attributes {s = #ltc.schedule<axes = [<[0] : 64>], outer = [], stored = [0, 1], nests = [<axes = [0], unrolled = [], members = [0]>], iterations = 1, grain = 0>} {}
