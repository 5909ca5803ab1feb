// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "backends.h"
#include "chapter/inputs.h"
#include "chapter/report.h"

namespace sdpa {

// Records chapter 02's attention and every backend that can run here, one after the other in this
// process, and prints one line for each: operations, time, memory, occupancy, error.
void compare(const chapter::Options& options, const chapter::Inputs& inputs,
             const std::function<chapter::Recording(const chapter::Options&, const chapter::Inputs&,
                                                    const std::function<at::Tensor()>&)>& record,
             const std::function<chapter::Recording(Backend)>& record_with);

}  // namespace sdpa
