// SPDX-License-Identifier: Apache-2.0
//
// What --backend means: one backend, LibTorch's own choice with its reasons, or all of them beside
// chapter 02's attention.
#pragma once

#include <functional>

#include "chapter/backends.h"
#include "chapter/inputs.h"
#include "chapter/report.h"

namespace sdpa {

// --backend auto|math|efficient|flash|cudnn|all
[[nodiscard]] chapter::ExtraOption backend_option();
[[nodiscard]] bool all_asked(const chapter::Options& options);

// Why --backend cannot be had with these options, "" where it can: what chapter::Info wants.
[[nodiscard]] std::string why_impossible(const chapter::Options& options);

// The backend that --backend names; for auto LibTorch's own choice, printed with its reasons
// against the others.
[[nodiscard]] chapter::Backend asked_or_chosen(const chapter::Options& options);

// The same options with files named after the backend.
[[nodiscard]] chapter::Options named_after(chapter::Backend backend, chapter::Options options);

// Records chapter 02's attention and every backend that can run here, one after the other in this
// process, and prints one line for each.
void compare(const chapter::Options& options, const chapter::Inputs& inputs,
             const std::function<chapter::Recording(const chapter::Options&, const chapter::Inputs&,
                                                    const std::function<at::Tensor()>&)>& record,
             const std::function<chapter::Recording(chapter::Backend)>& record_with);

}  // namespace sdpa
