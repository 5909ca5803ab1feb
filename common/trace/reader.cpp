// SPDX-License-Identifier: Apache-2.0
//
// How a trace is read. simdjson parses whole documents, a trace may be larger than memory, and what
// ends early or is damaged in one place should still be read everywhere else. So the event list is
// cut into batches: a window of about 1 MB is cut at what looks like the comma between two events,
// and parsed as an array of its own. No byte is looked at for framing alone. Where the guess was
// wrong or an event is damaged the batch does not parse as a whole array; what it added is taken
// back and its events are framed one by one (framing.h), mended (repair.h) or dropped.
#include "trace/reader.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "trace/batches.h"
#include "trace/event_builder.h"
#include "trace/framing.h"
#include "trace/not_a_trace.h"
#include "trace/repair.h"

namespace trace {
namespace {

// A value that is larger is passed over: no event and no metadata that matters comes near.
constexpr std::size_t kLargestValue = 32 << 20;
// An unfinished event of this size is more than one.
constexpr std::size_t kSuspicious = 64 << 10;
constexpr int kMostSwallowing = 8;
// Of the top level, to tell what a file is that is no trace.
constexpr std::size_t kMostKeys = 64;
// Longer than what is_event_start looks at.
constexpr std::size_t kOverlap = 256;

// The unread part of the input, as far as it was fetched. A byte before it and some behind it
// belong to the window, too: the reader writes brackets there.
class Window {
 public:
  explicit Window(Input& input)
      : input_(input), buffer_(2 * kMargin + simdjson::SIMDJSON_PADDING) {}

  [[nodiscard]] std::string_view text() const { return {buffer_.data() + begin_, end_ - begin_}; }
  [[nodiscard]] char* data() { return buffer_.data() + begin_; }
  // Bytes that may be read from data() on.
  [[nodiscard]] std::size_t capacity() const { return buffer_.size() - begin_; }
  // Where text() begins in the input.
  [[nodiscard]] std::int64_t offset() const { return offset_; }

  void consume(std::size_t size) {
    begin_ += size;
    offset_ += static_cast<std::int64_t>(size);
  }

  // Fetches until text() holds `size` bytes; false where the input ends before.
  bool fetch(std::size_t size) {
    if (text().size() >= size || is_at_end_) return text().size() >= size;
    std::memmove(buffer_.data() + kMargin, data(), text().size());
    end_ -= begin_ - kMargin;
    begin_ = kMargin;
    const std::size_t needed = kMargin + size + kMargin + simdjson::SIMDJSON_PADDING;
    if (buffer_.size() < needed) buffer_.resize(needed);
    const std::size_t wanted = begin_ + size - end_;
    const std::size_t got = input_.read(buffer_.data() + end_, wanted);
    end_ += got;
    is_at_end_ = got < wanted;
    return !is_at_end_;
  }

  // Fetches more than there is; false at the end of the input.
  bool grow() {
    const std::size_t before = text().size();
    fetch(2 * before + kOverlap);
    return text().size() > before;
  }

 private:
  static constexpr std::size_t kMargin = 2;  // on both sides

  Input& input_;
  std::vector<char> buffer_;
  std::size_t begin_ = kMargin, end_ = kMargin;
  std::int64_t offset_ = 0;
  bool is_at_end_ = false;
};

class Reader {
 public:
  Reader(Input input, std::size_t batch_size, EventSink* sink)
      : input_(std::move(input)),
        batch_size_(batch_size),
        sink_(sink),
        window_(input_),
        builder_(trace_) {}

  Trace run() {
    window_.fetch(batch_size_);
    if (window_.text().starts_with("\xEF\xBB\xBF")) window_.consume(3);
    const int first = peek();
    if (first == '[') {
      keys_ = keys_of_first_object(window_.text());
      if (std::find(keys_.begin(), keys_.end(), "ph") != keys_.end()) keys_.clear();  // an event
      window_.consume(1);
      has_list_ = true;
      trace_.report.truncated = !read_list();
    } else if (first == '{') {
      window_.consume(1);
      trace_.report.truncated = !read_members();
    } else if (first == kNothing && input_.problem().empty()) {
      throw ReadError(fmt::format("{} is empty; record the trace again", input_.name()));
    } else if (first != kNothing) {
      refuse(kind_of_bytes(window_.text()), "it begins with neither { nor [");
    }
    if (!trace_.report.truncated && peek() != kNothing) {
      trace_.report.unread_from = window_.offset();
      warn("what follows the end of the trace (byte {}) was not read", window_.offset());
    }
    finish();
    return std::move(trace_);
  }

 private:
  static constexpr int kNothing = -1;  // no character: the input is at its end

  // A value in front of the window. `is_held`: the window holds it from its first character on.
  struct Frame {
    Framing framing;
    std::size_t end;
    bool is_held;
  };

  template <typename... Values>
  void warn(fmt::format_string<Values...> message, Values&&... values) {
    trace_.report.warnings.push_back(fmt::format(message, std::forward<Values>(values)...));
  }

  [[noreturn]] void refuse(std::string_view kind, std::string_view otherwise) const {
    throw ReadError(kind.empty()
                        ? fmt::format("{} is not a trace: {}", input_.name(), otherwise)
                        : fmt::format("{} is not a trace: it looks like {}", input_.name(), kind));
  }

  // The next character that is no white space.
  int peek() {
    while (true) {
      window_.consume(skip_space(window_.text(), 0));
      if (!window_.text().empty()) return static_cast<unsigned char>(window_.text().front());
      if (!window_.grow()) return kNothing;
    }
  }

  Frame frame() {
    Framer framer;
    std::size_t position = 0;
    bool is_held = true;
    while (true) {
      const Framing framing = framer.advance(window_.text(), position);
      if (framing != Framing::needs_more) return {framing, position, is_held};
      if (position > kLargestValue) is_held = false;
      if (!is_held) {
        window_.consume(position);
        position = 0;
      }
      if (!window_.grow()) return {framing, position, is_held};
    }
  }

  Repair mend() {
    Repair mended = repair(window_.text());
    while (mended.framing == Framing::needs_more && window_.text().size() <= kLargestValue &&
           window_.grow()) {
      mended = repair(window_.text());
    }
    return mended;
  }

  // The keys of the top level and their values; false where the input ends before they do.
  bool read_members() {
    while (true) {
      const int c = peek();
      if (c == kNothing) return false;
      if (c == '}' || c == ',') {
        window_.consume(1);
        if (c == '}') return true;
        continue;
      }
      const Framing framing = read_member();
      if (framing == Framing::needs_more) return false;
      if (framing == Framing::broken && !skip_to_list()) return true;
    }
  }

  Framing read_member() {
    if (peek() != '"') return Framing::broken;
    const Frame quoted = frame();
    if (quoted.framing != Framing::whole || !quoted.is_held) return quoted.framing;
    const std::string key(window_.text().substr(1, quoted.end - 2));
    window_.consume(quoted.end);
    if (keys_.size() < kMostKeys) keys_.push_back(key);
    if (const int c = peek(); c != ':')
      return c == kNothing ? Framing::needs_more : Framing::broken;
    window_.consume(1);
    const bool is_list = peek() == '[';
    if (key != "traceEvents" || !is_list) return read_value(key);
    window_.consume(1);
    if (has_list_) builder_.rewind({});  // of a key that stands twice, the last one counts
    has_list_ = true;
    return read_list() ? Framing::whole : Framing::needs_more;
  }

  Framing read_value(const std::string& key) {
    Frame value = frame();
    const std::string_view text = window_.text().substr(0, value.end);
    if (value.framing == Framing::whole && !value.is_held) {
      // Too large to be of any use here.
    } else if (value.framing == Framing::whole && simdjson::validate_utf8(text)) {
      add_top_level(key, text);
    } else if (value.is_held && value.framing != Framing::needs_more) {
      const Repair mended = mend();
      if (mended.framing != Framing::whole) return Framing::broken;
      add_top_level(key, mended.text);
      value = {Framing::whole, mended.end, true};
    }
    window_.consume(value.end);
    return value.framing;
  }

  void add_top_level(const std::string& key, std::string_view text) {
    builder_.add_top_level(key, text);
    if (sink_ != nullptr) sink_->add_top_level(key, text);
  }

  // Behind damage at the top level: to the event list, where it is still to come.
  bool skip_to_list() {
    constexpr std::string_view kKey = "\"traceEvents\"";
    trace_.report.damaged_from = window_.offset();
    warn("the file is damaged at byte {}; keys beside its event list may be missing",
         window_.offset());
    do {
      const std::string_view text = window_.text();
      const std::size_t found = has_list_ ? std::string_view::npos : text.find(kKey, 1);
      if (found != std::string_view::npos) {
        window_.consume(found);
        return true;
      }
      window_.consume(text.size() - std::min(text.size(), kOverlap));
    } while (window_.grow());
    window_.consume(window_.text().size());
    return false;
  }

  // The event list, behind its [. False where the input ends before it does.
  bool read_list() {
    if (sink_ != nullptr) sink_->begin_list();
    while (true) {
      if (window_.offset() >= careful_until_) {
        window_.fetch(batch_size_);
        const std::string_view batch = window_.text().substr(0, batch_size_);
        const std::size_t cut = find_cut(batch);
        if (cut != std::string_view::npos && parse(window_.data(), cut, window_.capacity())) {
          end_loss(window_.offset());
          window_.consume(cut + 1);
          continue;
        }
        const std::size_t size = cut == std::string_view::npos ? batch.size() : cut;
        careful_until_ = window_.offset() + static_cast<std::int64_t>(size);
      }
      const int c = peek();
      if (c == kNothing) return false;
      if (c == '{') {
        if (!read_event()) return false;
        continue;
      }
      if (c == ']') {
        end_loss(window_.offset());
        window_.consume(1);
        return true;
      }
      if (c == ',') {
        window_.consume(1);
      } else if (!skip_other_element()) {
        return false;
      }
    }
  }

  // An event that its batch did not take. False where the input ends within it.
  bool read_event() {
    const std::int64_t begin = window_.offset();
    const Frame event = frame();
    if (event.framing == Framing::whole && event.is_held &&
        parse(window_.data(), event.end, window_.capacity())) {
      end_loss(begin);
      window_.consume(event.end);
      return true;
    }
    if (!event.is_held) {
      drop(begin);
      window_.consume(event.end);
      return event.framing == Framing::whole;
    }
    const Repair mended = mend();
    if (mended.framing == Framing::whole && parse(mended.text)) {
      if (trace_.report.repaired++ == 0) trace_.report.first_repaired = window_.offset();
      end_loss(begin);
      window_.consume(mended.end);
      return true;
    }
    return skip_damaged(event, mended);
  }

  // Goes on behind an event that could not be mended. False where the input ends within it.
  bool skip_damaged(const Frame& event, const Repair& mended) {
    if (event.framing == Framing::whole) {
      drop(window_.offset());
      window_.consume(event.end);
      return true;
    }
    if (mended.framing != Framing::needs_more) {
      drop(window_.offset());
      find_next_event(std::max<std::size_t>(mended.end, 1));
      return true;
    }
    // All the rest seems to belong to this event. That is so where the input ends within it, but
    // the last event of a list may be damaged so that it runs over the list's end.
    const std::string_view rest = window_.text();
    std::size_t next = find_list_end(rest, 1);
    if (event.framing == Framing::needs_more) {
      // Or it lacks its own end and swallowed those behind it: then they are looked at once more,
      // but not for every event of a file that is made like that.
      next = find_event_start(rest, 1);
      if (rest.size() < kSuspicious || next == std::string_view::npos) return false;
      if (++swallowing_ > kMostSwallowing) return false;
    }
    drop(window_.offset());
    window_.consume(std::min(next, rest.size()));
    return true;
  }

  // Something in the event list that is no object.
  bool skip_other_element() {
    const Frame other = frame();
    if (other.framing == Framing::needs_more) return false;
    drop(window_.offset());
    if (other.framing == Framing::whole) {
      window_.consume(other.end);
    } else {
      find_next_event(std::max<std::size_t>(other.end, 1));
    }
    return true;
  }

  // One damaged place is one dropped event, however many pieces it is in. It reaches from here to
  // the next event that is whole, or to the end of the list.
  void drop(std::int64_t begin) {
    if (lost_from_) return;
    lost_from_ = begin;
    if (trace_.report.dropped++ == 0) trace_.report.first_dropped = begin;
  }
  void end_loss(std::int64_t end) {
    if (lost_from_) trace_.report.dropped_bytes += end - *lost_from_;
    lost_from_.reset();
  }

  // Goes to the next event behind a damaged one, or to the end of the list.
  void find_next_event(std::size_t from) {
    do {
      const std::string_view text = window_.text();
      std::size_t next = find_event_start(text, from);
      if (next == std::string_view::npos) next = find_list_end(text, from);
      if (next != std::string_view::npos) {
        window_.consume(next);
        return;
      }
      window_.consume(std::max(from, text.size() - std::min(text.size(), kOverlap)));
      from = 0;
    } while (window_.grow());
    window_.consume(window_.text().size());
  }

  // Parses what begins at `text` and is `length` bytes long as the inside of an array. The bytes
  // around it are borrowed for the brackets, and for one that ends what runs over.
  bool parse(char* text, std::size_t length, std::size_t capacity) {
    const char before = std::exchange(text[-1], '[');
    const char behind = std::exchange(text[length], ']');
    const char last = std::exchange(text[length + 1], ' ');
    const bool is_good =
        parse_array(simdjson::padded_string_view(text - 1, length + 2, capacity + 1));
    text[-1] = before;
    text[length] = behind;
    text[length + 1] = last;
    return is_good;
  }

  bool parse(const std::string& event) {
    std::string array;
    array.reserve(event.size() + 2 + simdjson::SIMDJSON_PADDING);
    array.append("[").append(event).append("]");
    return parse_array(simdjson::padded_string_view(array.data(), array.size(), array.capacity()));
  }

  // All of the array's elements or none.
  bool parse_array(simdjson::padded_string_view text) {
    const EventBuilder::Mark mark = builder_.mark();
    simdjson::ondemand::document document;
    simdjson::ondemand::array events;
    bool is_good = !parser_.iterate(text).get(document) && !document.get_array().get(events);
    if (!is_good) return false;
    for (auto element : events) {
      simdjson::ondemand::value event;
      is_good = !std::move(element).get(event) && builder_.add(event);
      if (!is_good) break;
    }
    // A list that ends before the text does was not the event list, or the list is over.
    const char* where = nullptr;
    is_good = is_good && document.current_location().get(where) == simdjson::OUT_OF_BOUNDS;
    if (is_good && (sink_ == nullptr || sink_->add(text, text.capacity()))) return true;
    builder_.rewind(mark);
    return false;
  }

  void finish() {
    ReadReport& report = trace_.report;
    report.bytes = window_.offset() + static_cast<std::int64_t>(window_.text().size());
    end_loss(report.bytes);
    report.truncated |= !input_.problem().empty();
    const std::string problem = fmt::format(
        "{}, after {} bytes",
        input_.problem().empty() ? "the file ends too early" : input_.problem(), report.bytes);
    if (builder_.mark().elements == 0) {
      const std::string_view kind = kind_of_object(keys_);
      if (!kind.empty()) refuse(kind, "");
      if (builder_.mark().others > 0) refuse("", "nothing in its list is an event (none has a ph)");
    }
    if (builder_.mark().elements == 0 && report.dropped > 0) {
      throw ReadError(
          fmt::format("{} holds not one whole event: its list is damaged from byte {} on",
                      input_.name(), report.first_dropped));
    }
    if (builder_.mark().elements == 0 && report.truncated) {
      throw ReadError(fmt::format("{} holds not one whole event: {}", input_.name(), problem));
    }
    if (!has_list_) refuse("", "it has no list of traceEvents");
    builder_.finish();
    warn_of_times();
    if (report.repaired > 0) {
      warn("events mended because they hold what JSON does not allow: {}, the first at byte {}",
           report.repaired, report.first_repaired);
    }
    if (report.dropped > 0) {
      warn("damaged events left out: {} ({} bytes), the first at byte {}", report.dropped,
           report.dropped_bytes, report.first_dropped);
    }
    if (report.truncated) warn("{}; events read: {}", problem, trace_.events.size());
  }

  // What is odd but no damage: nothing is missing.
  void warn_of_times() {
    const ReadReport& report = trace_.report;
    if (report.unpaired > 0) {
      warn("begin and end events (ph B, E) without a partner: {}; a begin counts with duration 0",
           report.unpaired);
    }
    if (report.negative_durations.count > 0) {
      warn("durations below 0: {}; they count as 0", report.negative_durations.count);
    }
    if (report.absurd_durations.count > 0) {
      warn("durations longer than the recording: {}, the longest {:.3g} s; they count as 0",
           report.absurd_durations.count, static_cast<double>(report.longest_absurd_ns) / 1e9);
    }
    if (report.untimed.count > 0) {
      warn("GPU operations without a time (ts 0, dur 0): {}; they are rows of the table only",
           report.untimed.count);
    }
    if (report.unpadded_decimals) {
      warn(
          "the decimals of its times lack their leading zeros (.5 for .005), as Kineto wrote them "
          "in early 2024: times are off by up to 0.9 us");
    }
  }

  Input input_;
  std::size_t batch_size_;
  EventSink* sink_;  // nullptr: there is none
  Window window_;
  Trace trace_;
  EventBuilder builder_;
  simdjson::ondemand::parser parser_;
  bool has_list_ = false;
  std::vector<std::string> keys_;  // of the top level, or of the first object of a bare list
  int swallowing_ = 0;             // events that lacked their end
  std::optional<std::int64_t> lost_from_;  // between a damaged event and the next good one
  std::int64_t careful_until_ = 0;         // events before this offset are taken one by one
};

}  // namespace

Trace read_in_batches(Input input, std::size_t batch_size, EventSink* sink) {
  return Reader(std::move(input), batch_size, sink).run();
}

Trace read_text(std::string_view text) {
  return read_in_batches(Input(text), kBatchSize);
}

Trace read(const std::filesystem::path& path) {
  return read_in_batches(Input::open(path), kBatchSize);
}

}  // namespace trace
