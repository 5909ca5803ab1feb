// SPDX-License-Identifier: Apache-2.0
#include "trace/not_a_trace.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>

#include "trace/framing.h"

namespace trace {
namespace {

struct Magic {
  std::string_view bytes;
  std::string_view kind;
};
constexpr Magic kMagics[] = {
    {"\x80\x02", "a Python pickle (an allocator snapshot?); open that at pytorch.org/memory_viz"},
    {"\x80\x03", "a Python pickle (an allocator snapshot?); open that at pytorch.org/memory_viz"},
    {"\x80\x04", "a Python pickle (an allocator snapshot?); open that at pytorch.org/memory_viz"},
    {"\x80\x05", "a Python pickle (an allocator snapshot?); open that at pytorch.org/memory_viz"},
    {"SQLite format 3", "a database (of Nsight Systems?); export the trace with torch.profiler"},
    {"PK\x03\x04", "a zip archive; unpack it and give the trace inside"},
    {"\x28\xb5\x2f\xfd", "zstd data; unpack it with zstd -d first"},
    {"\xfd"
     "7zXZ",
     "xz data; unpack it with xz -d first"},
    {"BZh", "bzip2 data; unpack it with bzip2 -d first"},
    {"PERFILE2", "a recording of Linux perf; record with torch.profiler"},
    {"\x7f"
     "ELF",
     "a program"},
    {"<", "a page of HTML or XML; give the trace that it was made from"},
    {"-----", "a printed table; give the trace that it was printed from"},
    {"\xff\xfe", "UTF-16 text; convert it first: iconv -f utf-16 -t utf-8"},
    {"\xfe\xff", "UTF-16 text; convert it first: iconv -f utf-16 -t utf-8"},
    {"NVDAREPT", "a report of Nsight; export the trace with torch.profiler"},
};

// Each list is a set of keys that only this kind of file has together.
struct Kind {
  std::initializer_list<std::string_view> keys;
  std::string_view kind;
};
const Kind kKinds[] = {
    {{"segments", "device_traces"}, "an allocator snapshot; open it at pytorch.org/memory_viz"},
    {{"schema", "nodes"}, "an execution trace; draw it with readtrace graph"},
    {{"nodes", "start_ts"}, "an execution trace; draw it with readtrace graph"},
    {{"rocprofiler-sdk-tool"},
     "output of rocprofv3; record with torch.profiler, or write it with --output-format pftrace "
     "and "
     "open that in Perfetto"},
    {{"nodes", "samples", "timeDeltas"},
     "a CPU profile of V8; open it in the developer tools of a browser"},
    {{"$schema", "profiles"}, "a speedscope profile; open it at speedscope.app"},
    {{"context", "benchmarks"}, "results of Google Benchmark"},
    {{"machine_info", "benchmarks"}, "results of pytest-benchmark"},
    {{"cells", "nbformat"}, "a Jupyter notebook"},
    {{"resourceSpans"}, "an OpenTelemetry trace"},
    {{"data", "total", "limit"}, "an answer of Jaeger's API"},
    {{"address", "total_size", "blocks"},
     "the segments of an allocator snapshot; save all of it and open it at pytorch.org/memory_viz"},
    {{"ph", "ts"}, "single events, one per line or only one; put them in a list: [ ... , ... ]"},
};

}  // namespace

std::string_view kind_of_bytes(std::string_view head) {
  constexpr std::size_t kTarMagic = 257;
  if (head.size() > kTarMagic && head.substr(kTarMagic).starts_with("ustar")) {
    return "a tar archive; unpack it and give the trace inside";
  }
  for (const Magic& magic : kMagics) {
    if (head.starts_with(magic.bytes)) return magic.kind;
  }
  return {};
}

std::string_view kind_of_object(const std::vector<std::string>& keys) {
  for (const Kind& kind : kKinds) {
    if (std::all_of(kind.keys.begin(), kind.keys.end(), [&](std::string_view key) {
          return std::find(keys.begin(), keys.end(), key) != keys.end();
        })) {
      return kind.kind;
    }
  }
  return {};
}

std::vector<std::string> keys_of_first_object(std::string_view text) {
  constexpr std::size_t kMostKeys = 64;
  std::vector<std::string> keys;
  std::size_t position = text.find('{');
  if (position == std::string_view::npos) return keys;
  ++position;
  const auto value_ends = [&] {
    position = skip_space(text, position);
    return Framer().advance(text, position) == Framing::whole;
  };
  while (keys.size() < kMostKeys) {
    position = skip_space(text, position);
    const std::size_t begin = position;
    if (!text.substr(begin).starts_with('"') || !value_ends()) break;
    keys.emplace_back(text.substr(begin + 1, position - begin - 2));
    position = skip_space(text, position);
    if (!text.substr(position).starts_with(':')) break;
    ++position;
    if (!value_ends()) break;
    position = skip_space(text, position);
    if (!text.substr(position).starts_with(',')) break;
    ++position;
  }
  return keys;
}

}  // namespace trace
