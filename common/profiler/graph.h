// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>

namespace prof {

// Runs `work` once and writes every op that it calls, with the tensors that go in and come out, as
// an Execution Trace: LibTorch's ExecutionTraceObserver, in one call.
//
//   prof::record_graph("traces/attention.graph.json", [&] { attention(q, k, v, mask); });
//   // then: readtrace graph traces/attention.graph.json -o graph.svg
//
// gzip where the name ends in .gz. The file is there whole or not at all. All threads of the
// process are recorded. Call it outside of a recording: what it costs would be a part of that.
// Throws Error, trace::WriteError, and what `work` throws.
void record_graph(const std::filesystem::path& path, const std::function<void()>& work);

}  // namespace prof
