// SPDX-License-Identifier: Apache-2.0
#include "profiler/graph.h"

#include <c10/util/Logging.h>
#include <fmt/format.h>
#include <torch/csrc/profiler/standalone/execution_trace_observer.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "explain/execution_trace.h"
#include "profiler/error.h"
#include "profiler/scratch_folder.h"
#include "trace/files.h"
#include "trace/reader.h"

namespace prof {
namespace {

namespace observer = torch::profiler::impl;

// LibTorch logs a warning each time that the observer goes on or off.
class NoWarnings {
 public:
  NoWarnings() : before_(FLAGS_caffe2_log_level) {
    constexpr int kErrors = 2;
    FLAGS_caffe2_log_level = std::max(before_, kErrors);
  }
  ~NoWarnings() { FLAGS_caffe2_log_level = before_; }
  NoWarnings(const NoWarnings&) = delete;
  NoWarnings& operator=(const NoWarnings&) = delete;

 private:
  int before_;
};

// Records from its construction on; its end is what makes the file whole.
class Observer {
 public:
  explicit Observer(const std::filesystem::path& path) {
    // LibTorch does nothing where there is one already, and says nothing: but a new one has a file.
    const bool is_added = observer::addExecutionTraceObserver(path.string());
    if (!is_added || !std::filesystem::exists(path)) {
      throw Error(
          "LibTorch has room for one execution trace observer, and another one is on in this "
          "process: remove that one first");
    }
    observer::enableExecutionTraceObserver();
  }
  ~Observer() {
    try {
      observer::disableExecutionTraceObserver();
      observer::removeExecutionTraceObserver();
    } catch (...) {
      // The file then lacks its end, which the check of it finds.
    }
  }
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

 private:
  NoWarnings quiet_;
};

// The file's text, once it is known to be an execution trace from start to end.
std::string checked_text(const std::filesystem::path& path) {
  try {
    (void)explain::read_execution_trace(path);
  } catch (const trace::ReadError&) {
    throw Error(
        fmt::format("LibTorch wrote no whole execution trace into {}, so that disk is full "
                    "or cannot be written: free some space or set TMPDIR to another folder",
                    path.parent_path().parent_path().string()));
  }
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

void record_graph(const std::filesystem::path& path, const std::function<void()>& work) {
  const ScratchFolder scratch;
  const std::filesystem::path written = scratch.path() / "graph.json";
  {
    const Observer on(written);
    work();
  }
  const std::string text = checked_text(written);
  trace::write_file(path, path.extension() == ".gz" ? trace::gzip(text) : text);
}

}  // namespace prof
