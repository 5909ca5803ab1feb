// SPDX-License-Identifier: Apache-2.0
//
// What this chapter's own options mean.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "chapter/backends.h"
#include "chapter/comparison.h"
#include "chapter/inputs.h"
#include "chapter/report.h"
#include "op.h"

namespace kernels {

// --kernel auto|c1|...|v6|all, --against BACKEND,..., --kernel-library FILE,
// --causal-align top-left|bottom-right, --kv-seq SKV
[[nodiscard]] std::vector<chapter::ExtraOption> extra_options();

// Why these cannot be had, "" where they can: what chapter::Info wants.
[[nodiscard]] std::string why_impossible(const chapter::Options& options);

// The library that the options name, loaded; says which op it is.
[[nodiscard]] Op load_op(const chapter::Options& options);

// q, k and v for these options; --kv-seq makes k and v longer or shorter than q.
[[nodiscard]] chapter::Inputs make_inputs(const chapter::Options& options);

// How the op calls it: "top_left", "bottom_right".
[[nodiscard]] std::string causal_of(const chapter::Options& options);

// The versions to record: one for a name, the best for auto, for all each that the device runs.
[[nodiscard]] std::vector<std::string> asked_versions(const chapter::Options& options);
// For auto: what was chosen, and why not the others.
void say_choice(const chapter::Options& options, const std::string& version);

// LibTorch's own attention by each backend that --against names: what the kernels are measured
// against, in the same run.
[[nodiscard]] std::vector<chapter::Compared> record_backends(
    const chapter::Options& options, const chapter::Inputs& in,
    const std::function<chapter::Recording(const chapter::Options&, const chapter::Inputs&,
                                           const std::function<at::Tensor()>&)>& record);

// The same options with files named after what runs.
[[nodiscard]] chapter::Options named_after(const std::string& variant, chapter::Options options);

// The comparison of what was recorded, with a line for each version that could not be.
void show_comparison(const chapter::Options& options,
                     const std::vector<chapter::Compared>& recordings);

}  // namespace kernels
