// SPDX-License-Identifier: Apache-2.0
#include "explain/figure_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "explain/steps.h"
#include "trace/tree.h"
#include "trace/wrapping.h"

namespace explain {
namespace {

using trace::Category;
using trace::kNoEvent;

// Narrower than this on its own a box is invisible.
constexpr double kNarrow = 0.5;

Kind kind_of(Category category) {
  switch (category) {
    case Category::user_annotation:
    case Category::gpu_user_annotation:
      return Kind::annotation;
    case Category::cpu_op:
      return Kind::op;
    case Category::cuda_runtime:
    case Category::cuda_driver:
      return Kind::call;
    case Category::kernel:
      return Kind::kernel;
    case Category::gpu_memcpy:
      return Kind::memcpy;
    case Category::gpu_memset:
      return Kind::memset;
    case Category::cuda_sync:
      return Kind::sync;
    case Category::overhead:
      return Kind::overhead;
    default:
      return Kind::other;
  }
}

struct Item {
  std::uint32_t event = 0;
  std::size_t lane = 0;
  std::size_t row = 0;
  bool is_span = false;  // an annotation or a wait on the GPU: stands below the operations
  bool is_subject = true;
};

// Rows of a flame graph: an event goes below everything that is still open when it starts.
class Rows {
 public:
  std::size_t place(std::int64_t start, std::int64_t end) {
    while (!ends_.empty() && ends_.back() <= start) ends_.pop_back();
    ends_.push_back(end);
    most_ = std::max(most_, ends_.size());
    return ends_.size() - 1;
  }
  [[nodiscard]] std::size_t count() const { return std::min(most_, kMostRows); }

 private:
  std::vector<std::int64_t> ends_;
  std::size_t most_ = 0;
};

// A thread or stream while its events are collected.
struct Track {
  std::uint32_t thread = 0;
  bool is_gpu = false;
  Rows rows, spans;
  double busy_ns = 0;  // of the outermost events
  std::size_t events = 0;
};

class LayoutBuilder {
 public:
  LayoutBuilder(const trace::Trace& trace, const Launches& launches, const FigureRange& range,
                double width)
      : trace_(trace), launches_(launches), range_(range), width_(width) {
    find_events();
    place_events();
    choose_lanes();
    add_boxes();
    add_arrows();
  }

  [[nodiscard]] Layout result() && { return std::move(layout_); }

 private:
  [[nodiscard]] const trace::Event& event(std::uint32_t index) const {
    return trace_.events[index];
  }
  [[nodiscard]] double x(std::int64_t ns) const {
    const std::int64_t inside = std::clamp(ns, range_.from_ns, range_.to_ns);
    const double all = std::max(1.0, span_ns(range_.from_ns, range_.to_ns));
    return span_ns(range_.from_ns, inside) / all * width_;
  }
  [[nodiscard]] bool starts_in_subject(std::uint32_t index) const {
    const std::int64_t start = event(index).start_ns;
    return start >= range_.subject_from_ns && start < range_.subject_to_ns;
  }

  void find_events() {
    for (std::uint32_t i = 0; i < trace_.events.size(); ++i) {
      const trace::Event& e = event(i);
      if (e.category == Category::user_annotation && starts_in_subject(i))
        subject_annotations_.insert(e.external_id);
      if (!is_drawn(e) || e.start_ns >= range_.to_ns) continue;
      if (end_ns(e) <= range_.from_ns && e.start_ns < range_.from_ns) continue;
      events_.push_back(i);
    }
    std::sort(events_.begin(), events_.end(), [this](std::uint32_t a, std::uint32_t b) {
      const trace::Event& x = event(a);
      const trace::Event& y = event(b);
      if (x.start_ns != y.start_ns) return x.start_ns < y.start_ns;
      return x.duration_ns != y.duration_ns ? x.duration_ns > y.duration_ns : a < b;
    });
  }

  // The GPU's work belongs to what launched it, wherever it ran. What no call of the file launched
  // was launched before the recording, unless the recording is one of the GPU alone.
  [[nodiscard]] bool is_subject(std::uint32_t index) const {
    if (!range_.is_step) return true;
    const trace::Event& e = event(index);
    if (e.category == Category::gpu_user_annotation && e.external_id != 0)
      return subject_annotations_.contains(e.external_id);
    if (trace::is_gpu_operation(e.category)) {
      const std::uint32_t call = launches_.call_of(index);
      if (call != kNoEvent) return starts_in_subject(call);
      if (launches_.has_calls()) return false;
    }
    return starts_in_subject(index);
  }

  void place_events() {
    std::map<std::pair<bool, std::uint32_t>, std::size_t> track_of;
    items_.reserve(events_.size());
    for (const std::uint32_t index : events_) {
      const trace::Event& e = event(index);
      const bool is_gpu = trace::is_device(e.category);
      const auto [place, is_new] = track_of.try_emplace({is_gpu, e.thread}, tracks_.size());
      if (is_new)
        tracks_.push_back({.thread = e.thread, .is_gpu = is_gpu, .rows = {}, .spans = {}});
      Track& track = tracks_[place->second];
      const bool is_span = is_gpu && !trace::is_gpu_operation(e.category);
      const std::size_t row = (is_span ? track.spans : track.rows).place(e.start_ns, end_ns(e));
      if (row == 0) track.busy_ns += static_cast<double>(e.duration_ns);
      ++track.events;
      items_.push_back({index, place->second, row, is_span, is_subject(index)});
    }
  }

  // Orders the tracks as they are drawn, keeps the busiest ones, and renumbers the items.
  void choose_lanes() {
    std::vector<std::size_t> order(tracks_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    drop_quiet_tracks(order);
    const std::uint32_t first = subject_thread();
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return draw_key(a, first) < draw_key(b, first);
    });
    std::vector<std::size_t> lane_of(tracks_.size(), kNoLane);
    for (const std::size_t track : order) {
      lane_of[track] = layout_.lanes.size();
      layout_.lanes.push_back(empty_lane(tracks_[track]));
    }
    std::size_t too_deep = 0;
    for (Item& item : items_) {
      const Track& track = tracks_[item.lane];
      item.lane = lane_of[item.lane];
      if (item.lane != kNoLane && item.row >= kMostRows) {
        item.lane = kNoLane;
        ++too_deep;
      }
      // The outermost annotation stands at the very bottom.
      if (item.is_span) item.row = track.rows.count() + track.spans.count() - 1 - item.row;
    }
    std::erase_if(items_, [](const Item& item) { return item.lane == kNoLane; });
    if (too_deep > 0)
      layout_.notes.push_back(
          fmt::format("Not drawn: {} events nested deeper than {} levels.", too_deep, kMostRows));
  }

  void drop_quiet_tracks(std::vector<std::size_t>& order) {
    for (const bool is_gpu : {false, true}) {
      std::vector<std::size_t> side;
      for (const std::size_t track : order)
        if (tracks_[track].is_gpu == is_gpu) side.push_back(track);
      if (side.size() <= kMostLanes) continue;
      std::stable_sort(side.begin(), side.end(), [this](std::size_t a, std::size_t b) {
        return tracks_[a].busy_ns > tracks_[b].busy_ns;
      });
      const std::set<std::size_t> dropped(side.begin() + kMostLanes, side.end());
      std::size_t events = 0;
      for (const std::size_t track : dropped) events += tracks_[track].events;
      std::erase_if(order, [&](std::size_t track) { return dropped.contains(track); });
      layout_.notes.push_back(fmt::format("Not drawn: the {} least busy {}, {} events.",
                                          dropped.size(), is_gpu ? "streams" : "threads", events));
    }
  }

  // CPU before GPU; the thread that began the subject, then threads by first event; streams by
  // number: a shorter one is a smaller one.
  [[nodiscard]] std::tuple<bool, bool, std::size_t, std::string_view, std::size_t> draw_key(
      std::size_t index, std::uint32_t first) const {
    const Track& track = tracks_[index];
    if (!track.is_gpu) return {false, track.thread != first, 0, "", index};
    const std::string_view stream = trace_.text(trace_.threads[track.thread].tid);
    return {true, false, stream.size(), stream, index};
  }

  [[nodiscard]] std::uint32_t subject_thread() const {
    for (const Item& item : items_)
      if (item.is_subject && !tracks_[item.lane].is_gpu) return tracks_[item.lane].thread;
    return kNoEvent;
  }

  [[nodiscard]] Lane empty_lane(const Track& track) const {
    const trace::Thread& thread = trace_.threads[track.thread];
    const std::string_view pid = trace_.text(thread.pid);
    std::string_view tid = trace_.text(thread.tid);
    Lane lane;
    lane.is_gpu = track.is_gpu;
    lane.rows.resize(track.rows.count() + track.spans.count());
    if (!track.is_gpu) {
      lane.label = pid == "-1" ? "Profiler" : fmt::format("CPU, thread {}", tid);
      return lane;
    }
    if (tid.starts_with("stream ")) tid.remove_prefix(7);
    lane.label = fmt::format("GPU {}{}, stream {}", pid, device_name(pid), tid);
    return lane;
  }

  // " (NVIDIA H200)", where the file says so.
  [[nodiscard]] std::string device_name(std::string_view pid) const {
    for (const trace::DeviceProperties& device : trace_.devices)
      if (std::to_string(device.id) == pid && !device.name.empty())
        return fmt::format(" ({})", device.name);
    return "";
  }

  // Boxes that would be narrower than `narrow` share one. Where that leaves too many, wider ones
  // do, too: nothing is lost, the figure gets coarser.
  void add_boxes() {
    double narrow = kNarrow;
    while (!try_boxes(narrow)) narrow *= 2;
    std::size_t merged = 0;
    for (const Lane& lane : layout_.lanes)
      for (const std::vector<Box>& row : lane.rows)
        for (const Box& box : row)
          if (box.count > 1) merged += box.count;
    if (merged > 0)
      layout_.notes.push_back(
          fmt::format("Drawn together: {} events narrower than {} px.", merged, narrow));
  }

  bool try_boxes(double narrow) {
    for (Lane& lane : layout_.lanes)
      for (std::vector<Box>& row : lane.rows) row.clear();
    std::size_t count = 0;
    for (const Item& item : items_) {
      count += add_box(layout_.lanes[item.lane].rows[item.row], item, narrow) ? 1 : 0;
      if (count > kMostBoxes && narrow < width_) return false;
    }
    return true;
  }

  // False where the event went into the box before it.
  bool add_box(std::vector<Box>& row, const Item& item, double narrow) const {
    const trace::Event& e = event(item.event);
    const double left = x(e.start_ns);
    const Box box{.x = left,
                  .width = x(end_ns(e)) - left,
                  .event = item.event,
                  .count = 1,
                  .from_ns = e.start_ns,
                  .to_ns = end_ns(e),
                  .total_ns = e.duration_ns,
                  .kind = kind_of(e.category),
                  .is_subject = item.is_subject};
    // In a coarser figure faded boxes join others, too: the limit holds whatever is in the file.
    const auto may_join = [&](const Box& before) {
      return (before.count > 1 || before.width < narrow) && box.width < narrow &&
             box.x - (before.x + before.width) < narrow &&
             (narrow > kNarrow || before.is_subject == box.is_subject);
    };
    const bool joins = !row.empty() && may_join(row.back());
    if (joins)
      join(row.back(), box);
    else
      row.push_back(box);
    return !joins;
  }

  void join(Box& group, const Box& box) const {
    if (box.total_ns > event(group.event).duration_ns) {
      group.event = box.event;
      group.kind = box.kind;
    }
    ++group.count;
    group.is_subject |= box.is_subject;
    group.to_ns = std::max(group.to_ns, box.to_ns);
    group.width = x(group.to_ns) - group.x;
    group.total_ns = trace::wrapping_add(group.total_ns, box.total_ns);
  }

  // From each call to what it launched, if both are drawn. Arrows that would lie on one another are
  // one; of too many the longest operations keep theirs.
  void add_arrows() {
    std::unordered_map<std::uint32_t, const Item*> calls;
    std::vector<const Item*> operations;
    for (const Item& item : items_) {
      if (is_call(event(item.event).category)) calls.emplace(item.event, &item);
      if (item.is_subject && trace::is_gpu_operation(event(item.event).category) &&
          event(item.event).start_ns >= range_.from_ns)
        operations.push_back(&item);
    }
    std::stable_sort(operations.begin(), operations.end(), [this](const Item* a, const Item* b) {
      return event(a->event).duration_ns > event(b->event).duration_ns;
    });
    std::set<std::tuple<std::int64_t, std::int64_t, std::size_t>> seen;
    std::size_t left_out = 0;
    for (const Item* operation : operations) {
      const auto call = calls.find(launches_.call_of(operation->event));
      if (call == calls.end()) continue;
      const Arrow arrow = arrow_between(*call->second, *operation);
      if (!seen.emplace(std::llround(arrow.from_x), std::llround(arrow.to_x), arrow.to_lane).second)
        continue;
      if (layout_.arrows.size() < kMostArrows)
        layout_.arrows.push_back(arrow);
      else
        ++left_out;
    }
    if (left_out > 0)
      layout_.notes.push_back(fmt::format(
          "Launch arrows: those of the longest GPU operations; {} more are not drawn.", left_out));
  }

  [[nodiscard]] Arrow arrow_between(const Item& call, const Item& operation) const {
    const double middle = (x(event(call.event).start_ns) + x(end_ns(event(call.event)))) / 2;
    return {middle,       x(event(operation.event).start_ns), call.lane, call.row, operation.lane,
            operation.row};
  }

  static constexpr std::size_t kNoLane = std::numeric_limits<std::size_t>::max();

  const trace::Trace& trace_;
  const Launches& launches_;
  const FigureRange& range_;
  const double width_;
  std::vector<std::uint32_t> events_;  // of the range, by start, the longer first
  std::unordered_set<std::int64_t> subject_annotations_;  // their external ids
  std::vector<Track> tracks_;
  std::vector<Item> items_;
  Layout layout_;
};

}  // namespace

Layout lay_out(const trace::Trace& trace, const Launches& launches, const FigureRange& range,
               double width) {
  return LayoutBuilder(trace, launches, range, width).result();
}

}  // namespace explain
