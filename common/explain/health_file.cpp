// SPDX-License-Identifier: Apache-2.0
//
// The health of the file as such: what could not be read, times that cannot be, the unit of the
// clock, records of memory.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <numeric>

#include "explain/health_view.h"
#include "explain/text.h"
#include "trace/wrapping.h"

namespace explain {
namespace {

constexpr double kNsPerUs = 1000;

std::vector<std::string> first_of(const HealthView& view, const trace::Oddity& oddity) {
  Odd odd;
  odd.add(oddity.first);
  return view.examples(odd);
}

}  // namespace

std::vector<HealthFinding> damage(const HealthView& view) {
  const trace::ReadReport& report = view.trace.report;
  std::vector<HealthFinding> found;
  if (report.truncated) {
    found.push_back({.severity = Severity::fault,
                     .title = "the file ends before its event list does; events read",
                     .count = static_cast<std::int64_t>(view.trace.events.size()),
                     .meaning = report.warnings.back() + ". What came later is in no figure."});
  }
  if (report.dropped > 0) {
    found.push_back({.severity = Severity::fault,
                     .title = "damaged events left out",
                     .count = report.dropped,
                     .share = fmt::format("{} bytes of {}", report.dropped_bytes, report.bytes),
                     .meaning = fmt::format("The first is at byte {} of the (decompressed) text.",
                                            report.first_dropped)});
  }
  const auto note = [&](std::int64_t byte, std::string title, std::string meaning) {
    if (byte < 0) return;
    found.push_back(
        {.title = std::move(title),
         .count = -1,
         .meaning = fmt::format("From byte {} of the (decompressed) text on{}", byte, meaning)});
  };
  note(report.damaged_from, "damage outside the event list",
       ": what the file says beside its events (device, metadata) may be missing.");
  note(report.unread_from, "more text behind the end of the trace", "; it was not read.");
  if (report.repaired > 0) {
    found.push_back({.title = "events mended, for they hold what JSON does not allow",
                     .count = report.repaired,
                     .meaning = fmt::format("The first is at byte {} of the (decompressed) text; "
                                            "other tools may refuse the file.",
                                            report.first_repaired)});
  }
  if (report.unpaired > 0) {
    found.push_back({.severity = Severity::fault,
                     .title = "begin and end events (ph B, E) without a partner",
                     .count = report.unpaired,
                     .meaning = "A begin without its end counts with duration 0."});
  }
  if (view.trace.events.empty() && !report.truncated) {
    found.push_back({.severity = Severity::fault,
                     .title = "no events",
                     .count = -1,
                     .meaning = "The profiler was never active: check that the schedule's wait and "
                                "warmup steps were passed and that step() is called."});
  }
  return found;
}

std::vector<HealthFinding> impossible_times(const HealthView& view) {
  const trace::ReadReport& report = view.trace.report;
  std::vector<HealthFinding> found;
  const auto add = [&](const trace::Oddity& oddity, std::string title, std::string meaning) {
    if (oddity.count == 0) return;
    found.push_back({.severity = Severity::fault,
                     .title = std::move(title),
                     .count = oddity.count,
                     .examples = first_of(view, oddity),
                     .meaning = std::move(meaning)});
  };
  add(report.negative_durations, "durations below 0", "They count as 0: their rows lack time.");
  add(report.absurd_durations, "durations longer than the recording",
      fmt::format("The longest says {}. They count as 0: their rows lack time.",
                  time_text(static_cast<double>(report.longest_absurd_ns) / kNsPerUs)));
  add(report.untimed, "GPU operations without a time (ts 0 and dur 0)",
      "They are in the counts of their rows, but add no time: the GPU's profiler lost them.");
  if (report.unpadded_decimals) {
    found.push_back({.severity = Severity::fault,
                     .title = "decimals of times without their leading zeros (.5 for .005)",
                     .count = -1,
                     .meaning = "Times are off by up to 0.9us, as Kineto wrote them in early 2024: "
                                "record with a newer PyTorch."});
  }
  return found;
}

// A file that was written in nanoseconds, or through doubles, cannot be mended: the reader cannot
// know. Times since 1970 tell, since no recording is of the next century.
std::vector<HealthFinding> clock_unit(const HealthView& view) {
  constexpr std::int64_t kYear2100 = 4'102'444'800'000'000'000;
  constexpr std::int64_t kYear2000 = 946'684'800'000'000'000;
  constexpr std::size_t kEnough = 10;  // fewer may be whole by chance
  const std::int64_t base = view.trace.base_ns;
  Odd late, early;
  std::int64_t divisor = 0;  // of all starts
  std::size_t times = 0;
  std::int64_t latest = std::numeric_limits<std::int64_t>::min();
  for (std::uint32_t i = 0; i < view.trace.events.size(); ++i) {
    const trace::Event& event = view.event(i);
    if (!event.is_timed || event.category == trace::Category::profiler_span) continue;
    const std::int64_t start = trace::wrapping_subtract(event.start_ns, base);
    ++times;
    latest = std::max(latest, start);
    divisor = std::gcd(divisor, start);
    if (event.start_ns >= kYear2100) late.add(i);
    if (event.start_ns < 0) early.add(i);
  }
  std::vector<HealthFinding> found;
  if (!late.empty() || !early.empty()) {
    const Odd& odd = late.empty() ? early : late;
    found.push_back({.severity = Severity::fault,
                     .title = fmt::format("times {}", late.empty() ? "before 1970" : "after 2100"),
                     .count = odd.count(),
                     .examples = view.examples(odd),
                     .meaning = "ts and dur must be in microseconds; were they written in another "
                                "unit, or from another clock?"});
  }
  if (times < kEnough) return found;
  if (divisor % 1000 == 0) {
    found.push_back(
        {.title = "times are whole microseconds",
         .count = -1,
         .meaning = "Durations and self times of short events are rough, by up to 1us."});
  } else if (base == 0 && latest >= kYear2000 && (divisor % 125 == 0)) {
    found.push_back({.title = fmt::format("times are multiples of {}ns", divisor % 250 ? 125 : 250),
                     .count = -1,
                     .meaning = "A program that holds times as doubles has rewritten the file: "
                                "short events are rough, and some seem to overlap."});
  }
  return found;
}

std::vector<HealthFinding> memory_records(const HealthView& view) {
  const std::vector<trace::MemoryRecord>& records = view.trace.memory;
  std::vector<std::uint32_t> order;
  std::int64_t failed = 0;
  std::int64_t first_failed_ns = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t i = 0; i < records.size(); ++i) {
    if (!records[i].out_of_memory) {
      order.push_back(i);
      continue;
    }
    ++failed;
    first_failed_ns = std::min(first_failed_ns, records[i].time_ns);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return records[a].time_ns < records[b].time_ns;
  });
  struct Sum {
    std::int64_t bytes = 0, least = 0;
  };
  std::map<std::pair<int, int>, Sum> sums;  // by device
  for (const std::uint32_t i : order) {
    Sum& sum = sums[{records[i].device_type, records[i].device_index}];
    sum.bytes = trace::wrapping_add(sum.bytes, records[i].bytes);
    sum.least = std::min(sum.least, sum.bytes);
  }
  std::vector<HealthFinding> found;
  if (failed > 0) {
    const auto since = trace::wrapping_subtract(first_failed_ns, view.trace.start_ns);
    found.push_back({.severity = Severity::fault,
                     .title = "allocations that failed ([OutOfMemory])",
                     .count = failed,
                     .examples = {fmt::format("the first at {}",
                                              time_text(static_cast<double>(since) / kNsPerUs))},
                     .meaning = "What the program did from there on may not be what it usually "
                                "does."});
  }
  for (const auto& [device, sum] : sums) {
    if (sum.least >= 0) continue;
    const std::string name =
        device.first == 0 ? std::string("the CPU") : fmt::format("device {}", device.second);
    found.push_back({.title = fmt::format("memory freed on {} that was allocated before the "
                                          "recording, at least {}",
                                          name, size_text(trace::wrapping_subtract(0, sum.least))),
                     .count = -1,
                     .meaning = "Memory columns may be below 0; they are differences, no peaks."});
  }
  return found;
}

}  // namespace explain
