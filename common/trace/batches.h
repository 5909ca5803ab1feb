// SPDX-License-Identifier: Apache-2.0
//
// What trace::read does, with the size of its batches as a parameter: tests read the same text in
// batches of a few bytes and must get the same trace. And with a sink for the text of the events,
// for what is to be passed on whole while the model keeps only what it needs.
//
//   struct Copy : trace::EventSink { ... };
//   Copy copy;
//   trace::Trace trace = trace::read_in_batches(std::move(input), trace::kBatchSize, &copy);
#pragma once

#include <cstddef>
#include <string_view>

#include "trace/input.h"
#include "trace/trace.h"

namespace trace {

constexpr std::size_t kBatchSize = 1 << 18;

class EventSink {
 public:
  EventSink() = default;
  EventSink(const EventSink&) = delete;
  EventSink& operator=(const EventSink&) = delete;
  virtual ~EventSink() = default;

  // An event list begins. Of a hostile file's several lists the last one is the trace's.
  virtual void begin_list() = 0;
  // A JSON array of whole events, in the order of the file, mended where they had to be.
  // `capacity`: bytes that may be read from its first on. False refuses all of them: they come
  // again one by one, and what is refused then is dropped from the trace, too.
  [[nodiscard]] virtual bool add(std::string_view events, std::size_t capacity) = 0;
  // A key of the top level and the text of its value.
  virtual void add_top_level(std::string_view key, std::string_view json) = 0;
};

[[nodiscard]] Trace read_in_batches(Input input, std::size_t batch_size, EventSink* sink = nullptr);

}  // namespace trace
